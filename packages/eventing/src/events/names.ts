/** How the original's JetStream backend names events (kyma-project/eventing-manager, `pkg/backend/cleaner`). */
const prefix = "sap.kyma.custom";

/** Without white space and `. > * / \`. */
export const cleanSource = (source: string): string => source.replace(/[\s.>*/\\]/g, "");
/** Without white space and `> * / \`. */
export const cleanType = (type: string): string => type.replace(/[\s>*/\\]/g, "");

/** The name that `standard` Subscriptions compare: prefix, source and type; a type that has the prefix is one already. */
export function fullName(source: string, type: string): string {
  const clean = cleanType(type);
  return hasPrefix(type) ? clean : `${prefix}.${cleanSource(source)}.${clean}`;
}

export const hasPrefix = (type: string): boolean => type.startsWith(`${prefix}.`);

/** Whether the original would refuse the event: a part of its name is empty. */
export const hasEmptySegment = (name: string): boolean => name.split(".").includes("");
