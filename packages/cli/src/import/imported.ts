import { type ProjectConfig } from "../project/config.ts";

/** One directory's configuration. */
export interface Imported {
  directory: string;
  config: ProjectConfig;
  /** One sentence for each setting without a counterpart. */
  remarks: string[];
}
