/** What the tests of every room share: certificates, ports, the machine's addresses, the end of processes, a client for debuggers, how long a condition may take on a busy machine, how often a row repeats. */
export { certificateFor, type KeyPair } from "./certificate.ts";
export { endChild, hasEnded } from "./child-process.ts";
export { DebuggerClient } from "./debugger-client.ts";
export { freePort } from "./free-port.ts";
export { limitMemory, type MemoryLimit, noMemoryLimits } from "./memory-limit.ts";
export { ownAddresses } from "./own-addresses.ts";
export { patience } from "./patience.ts";
export { isFullSuite, rounds } from "./suite.ts";
