import { isAlreadyExists, isNotFound, type KubeClient, resources } from "@spry/kube";
import { definitionLabels } from "../crds.ts";
import { settingsMaps, settingsNamespace } from "./settings.ts";

const example =
  "# Keys and defaults are those of Knative Serving; docs/knative.md says which are followed.\n" +
  "# What is written under this key has no effect: put each setting under a key of its own.\n";

/**
 * Creates the ConfigMaps that are missing, with nothing set: people edit them, and tools read them. A cluster without
 * their namespace has none.
 */
export async function createSettingsMaps(client: KubeClient): Promise<void> {
  for (const name of settingsMaps) {
    try {
      await client.create(resources.configMaps, {
        metadata: { name, namespace: settingsNamespace, labels: { ...definitionLabels } },
        data: { _example: example },
      });
    } catch (error) {
      if (isNotFound(error)) return;
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
