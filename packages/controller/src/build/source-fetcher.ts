import { buildPaths, buildPrograms, type Function, names } from "@spry/function";
import { type Container, type Volume } from "@spry/kube";
import { normalBaseDir } from "@spry/source";
import { type Settings } from "../config.ts";
import { containerSecurityContext } from "../function/desired/security.ts";

/** The fetcher's alone: with the builder runs foreign code. */
const credentials = "/workspace/git-credentials";

/**
 * The init container that puts a commit's files where the builder looks for them. It alone sees the
 * credentials: with the builder runs foreign code. What it may use, the builder may anyway.
 */
export function sourceFetcher(
  fn: Function,
  settings: Settings,
  commit: string,
  { env = [], resources = {} }: Container,
): Container {
  const { auth } = fn.spec.source.gitRepository ?? {};
  return {
    name: names.fetchContainer,
    image: settings.builderImage,
    imagePullPolicy: "IfNotPresent",
    command: ["node", buildPrograms.fetcher],
    args: fetcherArguments(fn, settings, commit),
    env: env.filter(({ name }) => name !== "DOCKER_CONFIG"),
    resources,
    securityContext: containerSecurityContext,
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [
      { name: "sources", mountPath: buildPaths.source },
      { name: "build", mountPath: buildPaths.scratch },
      { name: "handover", mountPath: buildPaths.handover },
      { name: "tmp-dir", mountPath: "/tmp" },
      ...(auth ? [{ name: "git-credentials", mountPath: credentials, readOnly: true }] : []),
    ],
  };
}

/** The sources as a folder that the fetcher fills, and what it logs in with. */
export function gitVolumes(fn: Function): Volume[] {
  const { auth } = fn.spec.source.gitRepository ?? {};
  const sources: Volume = { name: "sources", emptyDir: { sizeLimit: "4Gi" } };
  if (!auth) return [sources];
  // Not for others, but for the group that the Pod's user is in.
  const secret = { secretName: auth.secretName, defaultMode: 0o440 };
  return [sources, { name: "git-credentials", secret }];
}

/**
 * Values are joined to their flags, so that none can be taken for a flag, and the folder comes
 * without its first slash, so that none can be taken for a path in the container.
 */
function fetcherArguments(fn: Function, settings: Settings, commit: string): string[] {
  const { url = "", reference = "", baseDir = "", auth } = fn.spec.source.gitRepository ?? {};
  const flags: [flag: string, value: string][] = [
    ["url", url],
    ["commit", commit],
    ["reference", reference],
    ["base-dir", normalBaseDir(baseDir) || "."],
    ["destination", buildPaths.source],
    ["scratch", buildPaths.scratch],
    ["handover", buildPaths.handover],
    ...settings.gitAllowedAddresses.map((each): [string, string] => ["allow", each]),
    ...(auth
      ? ([
          ["auth", auth.type],
          ["credentials", credentials],
        ] as [string, string][])
      : []),
  ];
  // A dollar sign would begin a variable.
  return flags.map(([flag, value]) => `--${flag}=${value.replaceAll("$", "$$$$")}`);
}
