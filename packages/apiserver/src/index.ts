/** The embedded Kubernetes API server. */
export { type ApiServer, type ApiServerOptions, createApiServer } from "./api-server.ts";
export { type FrontProxy } from "./aggregation/front-proxy.ts";
export { type PodSecurityLevel } from "./admission/pod-security/policy.ts";
export { type UserInfo } from "./request.ts";
export { type Listener, type ListenOptions } from "./http/listener.ts";

/** What may be stored. */
export { defaultStoreQuota, heapFor, storeQuotaOf } from "./store/store-quota.ts";
export { StoreTooLargeError } from "./store/store.ts";
export { type StoreQuota } from "./store/stored-bytes.ts";

/** The store of an API server that does not run. */
export { DamagedKeyError } from "./authentication/signing-key.ts";
export { DamagedStoreError } from "./store/damaged-store-error.ts";
export { adoptRestoredStore, checkStore, snapshotStore } from "./store/offline.ts";
