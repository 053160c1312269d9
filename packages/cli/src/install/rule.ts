/** A rule of a Role. */
export interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

export const rule = (apiGroup: string, resources: string[], ...verbs: string[]): Rule => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});
