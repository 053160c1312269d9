import { useState } from "preact/hooks";
import { type ApiRule, apiRules } from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import { useNamespaceNames } from "../api/namespace-names.ts";
import { paths, query } from "../router.ts";
import { useDomains } from "../state/exposed-urls.ts";
import { type Tone } from "../state/function-state.ts";
import { may, namespaceForNew } from "../state/rights.ts";
import { ActionDialog } from "../ui/action-dialog.tsx";
import { Age, Empty, State } from "../ui/basics.tsx";
import { ExposedHost } from "../ui/exposed-host.tsx";
import { FunctionField, type FunctionName, functionNameShape } from "../ui/function-field.tsx";
import { Icon } from "../ui/icon.tsx";
import { TableView } from "../ui/table-view.tsx";
import { TextField } from "../ui/text-field.tsx";
import { toast } from "../ui/toasts.tsx";
import { useKept } from "../ui/use-kept.ts";

const tones: Record<string, Tone> = {
  Ready: "good",
  Processing: "busy",
  Warning: "warn",
  Error: "bad",
  Deleting: "idle",
};

/** What is exposed to the outside: hosts, and who may call them. */
export function ApiRulesView() {
  const namespace = query.value.get("ns") ?? undefined;
  const live = useLive<ApiRule>(apiRules, { namespace });
  const [isExposing, setExposing] = useState(false);
  const known = useNamespaceNames();
  const forNew = namespaceForNew(namespace, known, "apirules", "gateway.kyma-project.io");
  const expose = forNew !== undefined && (
    <button type="button" class="primary" onClick={() => setExposing(true)}>
      <Icon name="plus" />
      Expose<span class="not-phone"> a Function</span>
    </button>
  );
  const domains = useDomains(live.items.value);
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
    <TableView
      title="APIRules"
      actions={expose}
      namespace={namespace}
      live={live}
      problemTitle="APIRules cannot be listed"
      empty={
        <Empty title="Nothing is exposed" actions={expose}>
          Functions answer callers on this machine or inside the cluster. An APIRule gives a
          Function a public host with HTTPS, and defines who may call it.
        </Empty>
      }
      heads={["Name", "State", "Hosts", "Service", "Who may call", "Age", ""]}
      rows={live.items.value.map((rule) => (
        <tr key={rule.metadata.uid}>
          <td>
            <strong>{rule.metadata.name}</strong>
            <div class="muted">{rule.metadata.namespace}</div>
          </td>
          <td>
            <State tone={tones[rule.status?.state ?? "Processing"] ?? "idle"}>
              {rule.status?.state ?? "Processing"}
            </State>
            {rule.status?.state !== "Ready" && <div class="muted">{rule.status?.description}</div>}
          </td>
          <td>
            {rule.spec.hosts?.map((host) => (
              <div key={host}>
                <ExposedHost host={host} domain={domains.get(rule.spec.gateway ?? "")} />
              </div>
            ))}
          </td>
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
    >
      {isExposing && <ExposeDialog namespace={namespace} onClose={() => setExposing(false)} />}
    </TableView>
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

const nothingTyped = {
  target: undefined as FunctionName | undefined,
  host: "",
  issuer: "",
  jwksUri: "",
};
const typedShape = {
  target: functionNameShape,
  host: "text",
  issuer: "text",
  jwksUri: "text",
} as const;
const allMethods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** The usual APIRule: a host, all paths, open to everyone or to the tokens of an issuer. Everything else is set in YAML. */
function ExposeDialog({
  namespace,
  onClose,
}: {
  namespace: string | undefined;
  onClose: () => void;
}) {
  const { value, change, forget } = useKept("expose", nothingTyped, typedShape);
  const { target, host, issuer, jwksUri } = value;
  const create = async ({ namespace, name }: FunctionName) => {
    const who = issuer ? { jwt: { authentications: [{ issuer, jwksUri }] } } : { noAuth: true };
    await client.create(apiRules, {
      metadata: { name, namespace },
      spec: {
        hosts: [host || name],
        gateway: "kyma-system/kyma-gateway",
        service: { name, namespace, port: 80 },
        rules: [{ path: "/*", methods: allMethods, ...who }],
      },
    });
    toast("good", `${name} is exposed.`);
    forget();
    onClose();
  };
  return (
    <ActionDialog
      title="Expose a Function"
      verb="Expose"
      isDisabled={!target || (issuer !== "" && jwksUri === "")}
      failureTitle="It was not exposed"
      onAction={async () => target && create(target)}
      onClose={onClose}
    >
      <FunctionField
        namespace={namespace}
        value={target}
        onChange={(target) => change({ target })}
      />
      <TextField
        label="Host"
        hint="a label in the gateway’s domain, or a domain name; empty: the Function’s name"
        value={host}
        onChange={(host) => change({ host })}
      />
      <TextField
        label="Issuer of tokens"
        hint="empty: everyone may call it"
        placeholder="https://issuer.example.com"
        value={issuer}
        onChange={(issuer) => change({ issuer })}
      />
      {issuer && (
        <TextField
          label="URL of the issuer’s keys"
          value={jwksUri}
          onChange={(jwksUri) => change({ jwksUri })}
        />
      )}
    </ActionDialog>
  );
}
