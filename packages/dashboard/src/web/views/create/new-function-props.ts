import { type NewFunction } from "../../state/new-function.ts";

/** What each part of the view gets. */
export interface NewFunctionProps {
  made: NewFunction;
  change: (part: Partial<NewFunction>) => void;
}
