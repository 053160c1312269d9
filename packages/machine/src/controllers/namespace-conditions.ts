import { type Clock, type Condition, deepEqual, type Namespace, setCondition } from "@spry/kube";

/** What a Namespace that is being deleted still has. */
export interface NamespaceContent {
  /** `plural.group` → how many objects. */
  remaining: Map<string, number>;
  /** Finalizer → in how many of them. */
  finalizers: Map<string, number>;
  /** Why objects could not be deleted. */
  failures: string[];
}

type Status = NonNullable<Namespace["status"]>;

/** The reason and message of a condition that is False: in Kubernetes' words (`pkg/controller/namespace/deletion`). */
const fine: Record<string, [reason: string, message: string]> = {
  NamespaceDeletionDiscoveryFailure: [
    "ResourcesDiscovered",
    "All resources successfully discovered",
  ],
  NamespaceDeletionGroupVersionParsingFailure: [
    "ParsedGroupVersions",
    "All legacy kube types successfully parsed",
  ],
  NamespaceDeletionContentFailure: [
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
  ],
  NamespaceContentRemaining: ["ContentRemoved", "All content successfully removed"],
  NamespaceFinalizersRemaining: [
    "ContentHasNoFinalizers",
    "All content-preserving finalizers finished",
  ],
};

/** The status with conditions that say what the Namespace's deletion waits for; undefined if they say so already. */
export function withConditions(
  { status = {} }: Namespace,
  content: NamespaceContent,
  clock: Clock,
): Status | undefined {
  const troubles = troublesOf(content);
  const before = (status.conditions ?? []) as Condition[];
  // A deletion without anything to wait for is over at once.
  if (Object.keys(troubles).length === 0 && before.length === 0) return undefined;
  let conditions = before;
  for (const [type, texts] of Object.entries(fine)) {
    const trouble = troubles[type];
    const [reason, message] = trouble ?? texts;
    const state = trouble ? "True" : "False";
    conditions = setCondition(conditions, { type, status: state, reason, message }, clock);
  }
  return deepEqual(conditions, before) ? undefined : { ...status, conditions };
}

function troublesOf({ remaining, finalizers, failures }: NamespaceContent): typeof fine {
  const list = (entries: Iterable<string>) => [...entries].sort().join(", ");
  const troubles: typeof fine = {};
  if (failures.length > 0)
    troubles["NamespaceDeletionContentFailure"] = [
      "ContentDeletionFailed",
      `Failed to delete all resource types, ${failures.length} remaining: ${list(failures.slice(0, 10))}`,
    ];
  if (remaining.size > 0)
    troubles["NamespaceContentRemaining"] = [
      "SomeResourcesRemain",
      `Some resources are remaining: ${list([...remaining].map(([name, count]) => `${name} has ${count} resource instances`))}`,
    ];
  if (finalizers.size > 0)
    troubles["NamespaceFinalizersRemaining"] = [
      "SomeFinalizersRemain",
      `Some content in the namespace has finalizers remaining: ${list([...finalizers].map(([name, count]) => `${name} in ${count} resource instances`))}`,
    ];
  return troubles;
}
