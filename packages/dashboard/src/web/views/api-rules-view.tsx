import { useState } from "preact/hooks";
import { type ApiRule, apiRules, functions } from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import { paths, query, setQuery } from "../router.ts";
import { type Tone } from "../state/function-state.ts";
import { listedFunctions } from "../state/listed-functions.ts";
import { may } from "../state/rights.ts";
import { Age, Dialog, Empty, Field, Problem, State } from "../ui/basics.tsx";
import { Frame } from "../ui/frame.tsx";
import { Icon } from "../ui/icon.tsx";
import { NamespaceChoice } from "../ui/namespace-choice.tsx";
import { toast } from "../ui/toasts.tsx";

const tones: Record<string, Tone> = {
  Ready: "good",
  Processing: "busy",
  Warning: "warn",
  Error: "bad",
  Deleting: "idle",
};

/** What is exposed to the outside: hosts, and who may call. */
export function ApiRulesView() {
  const namespace = query.value.get("ns") ?? undefined;
  const { items, isReady, problem } = useLive<ApiRule>(apiRules, { namespace });
  const [isExposing, setExposing] = useState(false);
  const expose = may(namespace ?? "default", "create", "apirules", "gateway.kyma-project.io") && (
    <button type="button" class="primary" onClick={() => setExposing(true)}>
      <Icon name="plus" />
      Expose<span class="not-phone"> a Function</span>
    </button>
  );
  const remove = async (rule: ApiRule) => {
    const { namespace, name = "" } = rule.metadata;
    try {
      await client.delete(apiRules, { namespace, name });
      toast("idle", `APIRule ${name} is deleted.`, {
        label: "Undo",
        run: () => void restore(rule),
      });
    } catch (error) {
      toast("bad", `${name} was not deleted: ${messageOf(error)}`);
    }
  };
  return (
    <Frame title="APIRules" actions={expose}>
      <div class="toolbar">
        <NamespaceChoice value={namespace} hasAll onChange={(ns) => setQuery({ ns })} />
      </div>
      {problem.value && !isReady.value && (
        <Problem title="APIRules cannot be listed" text={problem.value} />
      )}
      {isReady.value && items.value.length === 0 && (
        <Empty title="Nothing is exposed" actions={expose}>
          Functions answer callers on this machine or inside the cluster. An APIRule gives one a
          public host with HTTPS, and says who may call it.
        </Empty>
      )}
      {items.value.length > 0 && (
        <div class="panel scroll-x" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>State</th>
                <th>Hosts</th>
                <th>Service</th>
                <th>Who may call</th>
                <th>Age</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {items.value.map((rule) => (
                <tr key={rule.metadata.uid}>
                  <td>
                    <strong>{rule.metadata.name}</strong>
                    <div class="muted">{rule.metadata.namespace}</div>
                  </td>
                  <td>
                    <State tone={tones[rule.status?.state ?? "Processing"] ?? "idle"}>
                      {rule.status?.state ?? "Processing"}
                    </State>
                    {rule.status?.state !== "Ready" && (
                      <div class="muted">{rule.status?.description}</div>
                    )}
                  </td>
                  <td class="mono">{rule.spec.hosts?.join(", ")}</td>
                  <td>
                    <a
                      href={paths.fn(
                        rule.spec.service?.namespace ?? rule.metadata.namespace ?? "",
                        rule.spec.service?.name ?? "",
                      )}
                    >
                      {rule.spec.service?.name}
                    </a>
                  </td>
                  <td>{callersOf(rule)}</td>
                  <td class="muted">
                    <Age time={rule.metadata.creationTimestamp} />
                  </td>
                  <td>
                    {may(
                      rule.metadata.namespace ?? "",
                      "delete",
                      "apirules",
                      "gateway.kyma-project.io",
                    ) && (
                      <button
                        type="button"
                        class="plain small"
                        aria-label={`Delete APIRule ${rule.metadata.name}`}
                        onClick={() => void remove(rule)}
                      >
                        <Icon name="trash" />
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {isExposing && <ExposeDialog namespace={namespace} onClose={() => setExposing(false)} />}
    </Frame>
  );
}

async function restore({ metadata, spec }: ApiRule): Promise<void> {
  const { name = "", namespace = "" } = metadata;
  try {
    await client.create(apiRules, { metadata: { name, namespace }, spec });
  } catch (error) {
    toast("bad", `${name} was not created again: ${messageOf(error)}`);
  }
}

function callersOf({ spec }: ApiRule): string {
  const kinds = (spec.rules ?? []).map(({ path, noAuth, jwt }) => {
    const who = noAuth ? "everyone" : jwt ? "with a token" : "custom";
    return `${path}: ${who}`;
  });
  return kinds.join(", ");
}

const allMethods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** The usual APIRule: a host, all paths, open or for tokens of an issuer. More is said in YAML. */
function ExposeDialog({
  namespace,
  onClose,
}: {
  namespace: string | undefined;
  onClose: () => void;
}) {
  const { items } = useLive(functions, { namespace, keep: listedFunctions });
  const [target, setTarget] = useState("");
  const [host, setHost] = useState("");
  const [issuer, setIssuer] = useState("");
  const [jwksUri, setJwksUri] = useState("");
  const [failure, setFailure] = useState("");
  const create = async () => {
    const [inNamespace = "", name = ""] = target.split("/");
    const who = issuer ? { jwt: { authentications: [{ issuer, jwksUri }] } } : { noAuth: true };
    try {
      await client.create(apiRules, {
        metadata: { name, namespace: inNamespace },
        spec: {
          hosts: [host || name],
          gateway: "kyma-system/kyma-gateway",
          service: { name, namespace: inNamespace, port: 80 },
          rules: [{ path: "/*", methods: allMethods, ...who }],
        },
      });
      toast("good", `${name} is exposed.`);
      onClose();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <Dialog
      title="Expose a Function"
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            class="primary"
            disabled={target === "" || (issuer !== "" && jwksUri === "")}
            onClick={() => void create()}
          >
            Expose
          </button>
        </>
      }
    >
      <Field label="Function">
        {(ids) => (
          <select
            {...ids}
            value={target}
            onChange={({ currentTarget }) => setTarget(currentTarget.value)}
          >
            <option value="">Choose …</option>
            {items.value.map(({ metadata }) => (
              <option key={metadata.uid} value={`${metadata.namespace}/${metadata.name}`}>
                {metadata.namespace}/{metadata.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Host"
        hint="a label in the gateway’s domain, or a domain name; empty: the Function’s name"
      >
        {(ids) => (
          <input
            {...ids}
            class="mono"
            value={host}
            onInput={({ currentTarget }) => setHost(currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Issuer of tokens" hint="empty: everyone may call it">
        {(ids) => (
          <input
            {...ids}
            class="mono"
            placeholder="https://issuer.example.com"
            value={issuer}
            onInput={({ currentTarget }) => setIssuer(currentTarget.value)}
          />
        )}
      </Field>
      {issuer && (
        <Field label="URL of the issuer’s keys">
          {(ids) => (
            <input
              {...ids}
              class="mono"
              value={jwksUri}
              onInput={({ currentTarget }) => setJwksUri(currentTarget.value)}
            />
          )}
        </Field>
      )}
      {failure && <Problem title="It was not exposed" text={failure} />}
    </Dialog>
  );
}
