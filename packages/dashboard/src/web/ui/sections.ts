import { type IconName } from "./icon.tsx";

/** The sections that can be reached from every view. */
export const sections: readonly { path: string; title: string; icon: IconName; key: string }[] = [
  { path: "/functions", title: "Functions", icon: "function", key: "f" },
  { path: "/apirules", title: "APIRules", icon: "route", key: "a" },
  { path: "/events", title: "Events", icon: "event", key: "e" },
  { path: "/calls", title: "Calls", icon: "call", key: "c" },
  { path: "/builds", title: "Builds", icon: "build", key: "b" },
  { path: "/nodes", title: "Nodes", icon: "node", key: "o" },
  { path: "/settings", title: "Settings", icon: "settings", key: "s" },
];
