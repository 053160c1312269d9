/** Where APIRules expose Functions. */
import { type ApiRule, type IstioGateway, istioGateways } from "@spry/function/browser";
import { useEffect, useState } from "preact/hooks";
import { client } from "../api/client.ts";
import { readable } from "../api/object-shapes.ts";
import { info } from "./info.ts";

/** The URL of a host of an APIRule; undefined for a wildcard, or where the domain of a short host is not known. */
export function exposedUrl(host: string, domain: string | undefined): string | undefined {
  if (host.includes("*") || host === "") return undefined;
  const name = host.includes(".") ? host : domain && `${host}.${domain}`;
  const text = `https://${name}${info.value?.exposedPort ? `:${info.value.exposedPort}` : ""}/`;
  return name && URL.canParse(text) ? text : undefined;
}

/** Whether one of its paths leads to the Function. */
export function leadsTo({ metadata, spec }: ApiRule, namespace: string, name: string): boolean {
  const services = [spec.service, ...(spec.rules ?? []).map(({ service }) => service)];
  return services.some(
    (each) => each?.name === name && (each.namespace ?? metadata.namespace) === namespace,
  );
}

/** The domain that all servers of a Gateway have, which is that of short hosts. */
export function domainOf({ spec }: Pick<IstioGateway, "spec">): string | undefined {
  const all = (spec?.servers ?? []).flatMap(({ hosts = [] }) => hosts);
  const [only = "", ...others] = new Set(all.map((host) => host.slice(host.indexOf("/") + 1)));
  return others.length === 0 && only.startsWith("*.") ? only.slice(2) : undefined;
}

/** The domains of the Gateways of rules with short hosts, by `namespace/name`; those that the user may not read are left out. */
export function useDomains(rules: readonly ApiRule[]): ReadonlyMap<string, string> {
  const [domains, setDomains] = useState<ReadonlyMap<string, string>>(new Map());
  const wanted = [
    ...new Set(
      rules
        .filter(({ spec }) => (spec.hosts ?? []).some((host) => !host.includes(".")))
        .map(({ spec }) => spec.gateway ?? ""),
    ),
  ].join(",");
  useEffect(() => {
    const read = async () => {
      const found = await Promise.all(
        wanted.split(",").map(async (each): Promise<[string, string | undefined]> => {
          const [namespace = "", name = ""] = each.split("/");
          const gateway = await client.get(istioGateways, { namespace, name }).catch(() => ({}));
          return [each, domainOf(readable(istioGateways.plural, gateway))];
        }),
      );
      setDomains(new Map(found.flatMap(([key, domain]) => (domain ? [[key, domain]] : []))));
    };
    if (wanted !== "") void read();
  }, [wanted]);
  return domains;
}
