import { type Container, type Pod, quantityValue } from "@spry/kube";
import { type Isolation } from "../sandbox/sandbox.ts";
import { ContainerConfigError } from "./environment.ts";

/**
 * What Pod and container ask for in `securityContext` and `resources`; the container's own word
 * counts more. Throws a `ContainerConfigError` where the kubelet would refuse to run it.
 */
export function isolationOf(pod: Pod, container: Container, imageUser: string): Isolation {
  const whole = pod.spec?.securityContext;
  const own = container.securityContext;
  const { limits, requests } = container.resources ?? {};
  const amount = (quantity: string | undefined) =>
    quantity === undefined ? undefined : quantityValue(quantity);
  const user = own?.runAsUser ?? whole?.runAsUser;
  if (own?.runAsNonRoot ?? whole?.runAsNonRoot) assertNotRoot(user, imageUser, container.name);
  const groups = [...(whole?.supplementalGroups ?? [])];
  if (whole?.fsGroup !== undefined) groups.push(whole.fsGroup);
  const seccomp = (own?.seccompProfile ?? whole?.seccompProfile)?.type ?? "RuntimeDefault";
  if (seccomp === "Localhost")
    throw new ContainerConfigError(
      "seccomp profiles of type Localhost are not supported by this node; use RuntimeDefault",
    );
  return {
    cpuLimit: amount(limits?.["cpu"]),
    startCpuLimit: startCpuLimitOf(pod, container, amount(limits?.["cpu"])),
    cpuRequest: amount(requests?.["cpu"]),
    memoryLimit: amount(limits?.["memory"]),
    user,
    group: own?.runAsGroup ?? whole?.runAsGroup,
    supplementalGroups: groups,
    readOnlyRoot: own?.readOnlyRootFilesystem ?? false,
    allowPrivilegeEscalation: own?.allowPrivilegeEscalation ?? true,
    privileged: own?.privileged ?? false,
    addedCapabilities: own?.capabilities?.add ?? [],
    droppedCapabilities: own?.capabilities?.drop ?? [],
    seccomp: seccomp === "Unconfined" ? "Unconfined" : "RuntimeDefault",
  };
}

/** Cores. With a tenth of one, as the smallest Functions have, a start of 50 ms takes half a second. */
const startCores = 1;

/**
 * For a server, whose start requests may wait for: it has a probe that reports when it is ready. And for what runs once, such as a build, which
 * a person waits for; a container that is started again and again is not to live on its starts.
 */
function startCpuLimitOf(
  { spec }: Pod,
  { readinessProbe, startupProbe }: Container,
  cpuLimit: number | undefined,
): number | undefined {
  if (cpuLimit === undefined || cpuLimit >= startCores) return undefined;
  const { restartPolicy = "Always" } = spec ?? {};
  const isServer = (readinessProbe ?? startupProbe) && restartPolicy === "Always";
  return isServer || restartPolicy === "Never" ? startCores : undefined;
}

/** As `pkg/kubelet/kuberuntime/security_context.go` has it. */
function assertNotRoot(user: number | undefined, imageUser: string, container: string): void {
  const fail = (why: string): never => {
    throw new ContainerConfigError(
      `container has runAsNonRoot and ${why} (container: ${container})`,
    );
  };
  if (user !== undefined) {
    if (user === 0) fail("runAsUser is set to 0");
    return;
  }
  const name = imageUser.split(":")[0] ?? "";
  if (name === "" || /^0+$/.test(name)) fail("image will run as root");
  if (!/^\d+$/.test(name))
    fail(`image has non-numeric user (${name}), cannot verify user is non-root`);
}
