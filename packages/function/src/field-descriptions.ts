/** What the fields of a Function mean, for `kubectl explain` and docs/function-reference.md; by path. Other fields have their descriptions in the schema. */
import { type Schema } from "./core-schemas.ts";

const descriptions: Readonly<Record<string, string>> = {
  spec: "What runs, and how.",
  "spec.source": "Where the code is: exactly one of inline, gitRepository and image.",
  "spec.source.inline": "The code itself: one file, and what it depends on.",
  "spec.source.inline.source": "The text of the handler.",
  "spec.source.inline.dependencies": "The text of a package.json or of a requirements.txt.",
  "spec.source.gitRepository": "A directory of a Git repository; followed as it changes.",
  "spec.source.gitRepository.url": "Address of the repository: https, http or ssh.",
  "spec.source.gitRepository.reference": "Branch, tag or commit.",
  "spec.source.gitRepository.baseDir": "The Function's directory in the repository.",
  "spec.source.gitRepository.auth": "How to log in; without it the repository is public.",
  "spec.source.gitRepository.auth.type": "basic: user name and password or token; key: SSH key.",
  "spec.source.gitRepository.auth.secretName":
    "Secret of the namespace with the keys username and password, or key.",
  "spec.resourceConfiguration": "Processor and memory of the Function's Pods and of its builds.",
  "spec.resourceConfiguration.function": "Processor and memory of each of the Function's Pods.",
  "spec.resourceConfiguration.build": "Processor and memory of the Pods that build its image.",
  "spec.scaleConfig.minReplicas": "Minimum number of Pods; 0: none until a request comes.",
  "spec.scaleConfig.maxReplicas": "Maximum number of Pods.",
  "spec.template": "Not supported: use labels and annotations.",
  "spec.template.labels": "Not supported.",
  "spec.template.annotations": "Not supported.",
  "spec.secretMounts[].secretName": "Name of the Secret.",
  "spec.secretMounts[].mountPath": "Absolute path of the directory with a file for each key.",
  status: "What has been observed; written by the controller alone.",
  "status.conditions": "ConfigurationReady, BuildReady and Running, with the reason of each.",
  "status.conditions[].type": "Type of the condition.",
  "status.conditions[].status": "True, False or Unknown.",
  "status.conditions[].reason": "The reason as one word, for programs.",
  "status.conditions[].message": "The reason as a sentence, for people.",
  "status.conditions[].lastTransitionTime": "When status changed last.",
  "status.conditions[].observedGeneration": "The generation that the condition is about.",
  "status.observedGeneration": "The generation that has been looked at.",
  "status.runtime": "The runtime in use.",
  "status.runtimeImage": "The base of the newest build.",
  "status.commit": "The commit in use.",
  "status.reference": "The reference in use.",
  "status.baseDir": "The directory in use.",
  "status.gitRepository": "The source in use, if it is a Git repository.",
  "status.gitRepository.url": "Address of the repository.",
  "status.gitRepository.reference": "Branch, tag or commit.",
  "status.gitRepository.baseDir": "The Function's directory in it.",
  "status.gitRepository.commit": "The commit in use.",
  "status.replicas": "How many Pods there are.",
  "status.podSelector": "Selector of the Function's Pods, for scalers.",
  "status.lastColdStart": "When a request last waited for a Pod to start.",
  "status.functionResourceProfile": "Name of the profile of the Function's Pods.",
  "status.buildResourceProfile": "Name of the profile of its builds.",
  "status.build.key": "Digest of all that determines the image.",
  "status.build.image": "The image, by digest.",
  "status.build.failures": "How many times this build has failed because of the infrastructure.",
  "status.build.retryAfter": "When the build is tried again.",
  "status.build.retriedFor":
    "The value of the annotation retry-build that the newest try has answered.",
};

/** In each profile, wherever it stands. */
const profileFields: Readonly<Record<string, string>> = {
  profile: "Name of a profile.",
  resources: "Requests and limits, as in a container; instead of a profile.",
};

/** The schema with a description for each field that has none of its own. */
export function described(schema: Schema, path = ""): Schema {
  const [, parent, last = ""] = /^(.*?)\.?([^.]*)$/.exec(path) ?? [];
  const text =
    descriptions[path] ??
    (parent?.startsWith("spec.resourceConfiguration.") ? profileFields[last] : undefined);
  const { properties, items } = schema;
  return {
    ...schema,
    ...(text !== undefined && schema.description === undefined && { description: text }),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, field]) => [
          name,
          described(field, path ? `${path}.${name}` : name),
        ]),
      ),
    }),
    ...(items && { items: described(items, `${path}[]`) }),
  };
}
