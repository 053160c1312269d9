/** Kubernetes machinery: what any controller or client of the Kubernetes API needs, and nothing of Spry. */

// What runs in a browser as well.
export * from "./browser.ts";

// What needs Node.js, or is for controllers only.
export {
  Controller,
  type ControllerOptions,
  type Reconcile,
  type ReconcileResult,
} from "./controller.ts";
export {
  type HttpsTransport,
  httpsTransport,
  type HttpsTransportOptions,
} from "./https-transport.ts";
export { type WebSocketAccess, webSocketAccess } from "./web-socket-access.ts";
export { type ClusterConfig, type ExecConfig, loadKubeconfig } from "./kubeconfig.ts";
export { type ChannelFrame, channels, encodeFrame, maxFrameBytes, readFrames } from "./channels.ts";
export {
  type ControllerMetrics,
  type PassResult,
  prometheusMetrics,
  type PrometheusMetrics,
  type QueueMetrics,
} from "./metrics/controller-metrics.ts";
export { measuredTransport } from "./metrics/measured-transport.ts";
export {
  type Counter,
  type Gauge,
  type Histogram,
  type Labels,
  MetricsRegistry,
} from "./metrics/registry.ts";
export { type LeaderElectionOptions, runAsLeader } from "./leader-election.ts";
export { type EventNote, EventRecorder, type EventRecorderOptions } from "./event-recorder.ts";
export {
  BoundedConnections,
  boundConnections,
  type ConnectionLimits,
  noteRequest,
} from "./bounded-connections.ts";
export { beginHandshakesInTurns, sliceMs } from "./handshake-turns.ts";
export { OwnerQueue } from "./owner-queue.ts";
export { requestTurn } from "./request-turns.ts";
export { MultiMap } from "./multi-map.ts";
export { bearerToken, isSameSecret } from "./bearer-token.ts";
export { offerText } from "./shared-texts.ts";
export { ManualClock } from "./manual-clock.ts";
export { type PullCredentials, pullCredentials } from "./pull-credentials.ts";
export {
  type AdmissionRequest,
  type AdmissionResponse,
  type AdmissionReview,
  allow,
  allowPatched,
  answerReview,
  type PatchOperation,
  readReviewBody,
  refuse,
  webhookProblem,
} from "./admission-review.ts";
export {
  connectionLimit,
  type Descriptors,
  descriptorsOf,
  openFilesLimit,
} from "./processes/descriptors.ts";
export {
  identify,
  type Life,
  lifeOf,
  type ProcessIdentity,
  readIdentity,
  signalIdentity,
} from "./processes/process-identity.ts";
export {
  canIdentifyProcesses,
  lookAtProcess,
  parseStat,
  type ProcessStat,
  readStat,
  thisBoot,
} from "./processes/process-stat.ts";
export {
  isOthersPid,
  processExists,
  signalGroup,
  signalItself,
  signalProcess,
} from "./processes/signals.ts";
export {
  limitReached,
  NotStarted,
  startProgram,
  type StartedProgram,
  tryProgram,
} from "./processes/start-program.ts";
export { mapInTurn } from "./processes/in-turn.ts";
export { answerConversion } from "./conversion-review.ts";
export {
  addressKind,
  type AddressKind,
  blockListOf,
  isNeverCalled,
} from "./outbound/address-kind.ts";
export { AddressRefusedError } from "./outbound/address-refused.ts";
export { OutboundGuard, type OutboundPolicy, portOf } from "./outbound/guard.ts";
export { type HostPort, parseHostPort } from "./outbound/host-port.ts";
export { familyOf, formsOf, plainAddress } from "./outbound/ip-address.ts";
export { integerOf } from "./int64.ts";
export { dumpYaml, loadAllYaml, loadYaml } from "./yaml.ts";
