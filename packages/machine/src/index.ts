/** The single machine: what controls workloads on it, and the agent that runs their Pods. */
export { type ControllersOptions, startControllers } from "./controllers/start-controllers.ts";
