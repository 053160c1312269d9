import { type Subscription, subscriptions } from "@spry/function";
import { apiVersionOf, type KubeObject } from "@spry/kube";
import { isTooDeep } from "../events/cloud-event.ts";
import { cleanType } from "../events/names.ts";
import { deliveryProblems, filtersProblem } from "../validation/extensions.ts";
import {
  type ProtocolSettings,
  subscriptionsV1alpha1,
  type SubscriptionV1alpha1,
} from "./v1alpha1.ts";

const newer = apiVersionOf(subscriptions);
const older = apiVersionOf(subscriptionsV1alpha1);
/** What v1alpha1 cannot say of a v1alpha2 object: without it, a change through v1alpha1 would drop it. */
const keptAnnotation = "eventing.kyma-project.io/v1alpha2-spec";
type Spec = Subscription["spec"];

/**
 * A Subscription in the other version, as the original converts it.
 * @throws Error for other versions, and for more than one source
 */
export function convertSubscription(object: KubeObject, to: string): KubeObject {
  const from = object.apiVersion ?? "";
  for (const version of [from, to]) {
    if (version !== newer && version !== older)
      throw new Error(`converting a Subscription from ${from} to ${to} is not supported`);
  }
  if (from === to) return object;
  return from === older
    ? toV1alpha2(object as SubscriptionV1alpha1)
    : toV1alpha1(object as Subscription);
}

function toV1alpha2({ metadata, spec, status, kind }: SubscriptionV1alpha1): Subscription {
  const { id, sink, protocol, protocolsettings, filter, config } = spec;
  const filters = filter?.filters ?? [];
  const sources = [...new Set(filters.map(({ eventSource }) => eventSource?.value ?? ""))];
  if (sources.filter((source) => source !== "").length > 1)
    throw new Error("subscription contains more than 1 eventSource");
  const inFlight = config?.maxInFlightMessages;
  const { [keptAnnotation]: kept, ...annotations } = metadata.annotations ?? {};
  const own: Spec = {
    ...(id === undefined ? {} : { id }),
    sink,
    typeMatching: "exact",
    source: sources.find((source) => source !== "") ?? "",
    types: filters.map(({ eventType }) => cleanType(eventType?.value ?? "")),
    config: {
      ...(protocol ? { protocol } : {}),
      ...flat(protocolsettings),
      ...(inFlight === undefined ? {} : { maxInFlightMessages: String(inFlight) }),
    },
  };
  return {
    apiVersion: newer,
    kind: kind ?? subscriptions.kind,
    metadata: kept === undefined ? metadata : { ...metadata, annotations },
    spec: { ...own, ...restored(kept) },
    ...(status && {
      status: {
        conditions: status.conditions ?? [],
        ready: status.ready ?? false,
        types: (status.cleanEventTypes ?? []).map((cleaned) => ({
          originalType: cleaned,
          cleanType: cleaned,
        })),
      },
    }),
  };
}

function toV1alpha1({ metadata, spec, status, kind }: Subscription): SubscriptionV1alpha1 {
  const { id, sink, source = "", types, typeMatching, filters, delivery, config = {} } = spec;
  const inFlight = Number(config["maxInFlightMessages"]);
  const hasInFlight = Number.isInteger(inFlight) && inFlight > 0;
  const settings = unflat(config);
  const extra = {
    ...(typeMatching === "exact" ? {} : { typeMatching: typeMatching ?? "standard" }),
    ...(filters && { filters }),
    ...(delivery && { delivery }),
  };
  const hasExtra = Object.keys(extra).length > 0;
  const annotations = { ...metadata.annotations, [keptAnnotation]: JSON.stringify(extra) };
  return {
    apiVersion: older,
    kind: kind ?? subscriptions.kind,
    metadata: hasExtra ? { ...metadata, annotations } : metadata,
    spec: {
      ...(id === undefined ? {} : { id }),
      sink,
      ...(config["protocol"] ? { protocol: config["protocol"] } : {}),
      ...(settings && { protocolsettings: settings }),
      filter: {
        filters: types.map((type) => ({
          eventSource: { property: "source", type: "exact", value: source },
          eventType: { property: "type", type: "exact", value: type },
        })),
      },
      ...(hasInFlight && { config: { maxInFlightMessages: inFlight } }),
    },
    ...(status && {
      status: {
        conditions: status.conditions ?? [],
        ready: status.ready ?? false,
        cleanEventTypes: (status.types ?? []).map((type) => type.cleanType),
        ...(hasInFlight && { config: { maxInFlightMessages: inFlight } }),
      },
    }),
  };
}

/** An annotation may contain any text: values that the definition would refuse are dropped. */
function restored(kept: string | undefined): Partial<Spec> {
  if (kept === undefined || isTooDeep(Buffer.from(kept))) return {};
  try {
    const { typeMatching, filters, delivery } = JSON.parse(kept) as Partial<Spec>;
    return {
      ...((typeMatching === "standard" || typeMatching === "exact") && { typeMatching }),
      ...(filters && filtersProblem(filters) === undefined && { filters }),
      ...(delivery && deliveryProblems(delivery).length === 0 && { delivery }),
    };
  } catch {
    return {};
  }
}

/** Of EventMesh, which is not served here; kept, so that nothing is lost. */
const authNames = {
  type: "protocolsettings.webhookauth.type",
  grantType: "protocolsettings.webhookauth.granttype",
  clientId: "protocolsettings.webhookauth.clientid",
  clientSecret: "protocolsettings.webhookauth.clientsecret",
  tokenUrl: "protocolsettings.webhookauth.tokenurl",
} as const;
const scopeName = "protocolsettings.webhookauth.scope";
const settingNames = {
  contentMode: "protocolsettings.contentmode",
  qos: "protocolsettings.qos",
} as const;
const handshakeName = "protocolsettings.exempthandshake";

function flat(settings: ProtocolSettings | undefined): Record<string, string> {
  const all: Record<string, string> = {};
  if (!settings) return all;
  for (const [name, key] of Object.entries(settingNames)) {
    const value = settings[name as keyof typeof settingNames];
    if (value !== undefined) all[key] = value;
  }
  if (settings.exemptHandshake !== undefined) all[handshakeName] = String(settings.exemptHandshake);
  for (const [name, key] of Object.entries(authNames)) {
    const value = settings.webhookAuth?.[name as keyof typeof authNames];
    if (value !== undefined) all[key] = value;
  }
  if (settings.webhookAuth?.scope) all[scopeName] = settings.webhookAuth.scope.join(",");
  return all;
}

function unflat(config: Record<string, string>): ProtocolSettings | undefined {
  const pick = (names: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(names).flatMap(([name, key]) =>
        config[key] === undefined ? [] : [[name, config[key]]],
      ),
    );
  const auth = {
    ...pick(authNames),
    ...(config[scopeName] ? { scope: config[scopeName].split(",") } : {}),
  };
  const settings: ProtocolSettings = {
    ...pick(settingNames),
    ...(config[handshakeName] === undefined
      ? {}
      : { exemptHandshake: config[handshakeName] !== "false" }),
    ...(Object.keys(auth).length > 0 ? { webhookAuth: auth } : {}),
  };
  return Object.keys(settings).length > 0 ? settings : undefined;
}
