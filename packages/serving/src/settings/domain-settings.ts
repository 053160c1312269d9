import { SettingsError } from "./config-reader.ts";

/** `config-domain`: what the hosts of Routes end in, by the Routes' labels. */
export interface DomainSettings {
  domains: readonly { name: string; selector: Readonly<Record<string, string>> }[];
}

const exampleKey = "_example";
const hostName =
  /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$/;
const maxDomains = 1_000;

/** Each key is a domain; its value is empty, or a selector in YAML (knative.dev/serving/pkg/reconciler/route/config). */
export function domainSettings(data: Readonly<Record<string, string>> = {}): DomainSettings {
  const entries = Object.entries(data).filter(([key]) => key !== exampleKey);
  if (entries.length > maxDomains)
    throw new SettingsError(`${entries.length} domains, at most ${maxDomains} are possible`);
  const domains = entries.map(([name, text]) => {
    if (!hostName.test(name)) throw new SettingsError(`${name} is not the name of a domain`);
    return { name, selector: selectorIn(name, text) };
  });
  return { domains };
}

/** The part of YAML that a selector needs: `selector:` with one indented `key: value` in each line; `{}` and comments. */
function selectorIn(domain: string, text: string): Record<string, string> {
  const selector: Record<string, string> = {};
  let isInSelector = false;
  for (const line of text.split("\n")) {
    const bare = line.replace(/(?:^|\s)#.*$/, "").trimEnd();
    if (bare.trim() === "" || bare.trim() === "{}" || bare.trim() === "---") continue;
    const [, indent = "", key = "", value = ""] = /^(\s*)([^\s:]+):\s*(.*)$/.exec(bare) ?? [];
    if (key === "")
      throw new SettingsError(`${domain}: ${bare.trim()} is not a line of a selector`);
    if (indent === "") isInSelector = key === "selector";
    else if (isInSelector) selector[key] = value.replace(/^(["'])(.*)\1$/, "$2");
  }
  return selector;
}

/** The most specific domain whose selector fits the labels, of several the first by name; undefined if none does. */
export function domainFor(
  { domains }: DomainSettings,
  labels: Readonly<Record<string, string>> = {},
): string | undefined {
  const size = (selector: object) => Object.keys(selector).length;
  return domains
    .filter(({ selector }) =>
      Object.entries(selector).every(([label, value]) => labels[label] === value),
    )
    .toSorted((a, b) => size(b.selector) - size(a.selector) || (a.name < b.name ? -1 : 1))[0]?.name;
}
