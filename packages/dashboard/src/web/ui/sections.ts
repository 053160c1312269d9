import { type IconName } from "./icon.tsx";

export interface Section {
  path: string;
  title: string;
  icon: IconName;
  /** After `g`. */
  key: string;
  /** A phone has no room for it among the others: there, a view of the same subject leads to it. */
  isWide?: boolean;
}

/** The sections that can be reached from every view. */
export const sections: readonly Section[] = [
  { path: "/functions", title: "Functions", icon: "function", key: "f" },
  { path: "/apirules", title: "APIRules", icon: "route", key: "a" },
  { path: "/events", title: "Events", icon: "event", key: "e" },
  { path: "/calls", title: "Calls", icon: "call", key: "c" },
  { path: "/builds", title: "Builds", icon: "build", key: "b" },
  { path: "/registry", title: "Registry", icon: "registry", key: "r", isWide: true },
  { path: "/nodes", title: "Nodes", icon: "node", key: "o" },
  { path: "/settings", title: "Settings", icon: "settings", key: "s" },
];
