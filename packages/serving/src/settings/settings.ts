import {
  type Change,
  type Clock,
  type ConfigMap,
  Informer,
  type KubeClient,
  type Logger,
  messageOf,
  resources,
} from "@spry/kube";
import { type AutoscalerSettings, autoscalerSettings } from "./autoscaler-settings.ts";
import { type DefaultSettings, defaultSettings } from "./default-settings.ts";
import { type DomainSettings, domainSettings } from "./domain-settings.ts";
import { type FeatureSettings, featureSettings } from "./feature-settings.ts";
import { type GcSettings, gcSettings } from "./gc-settings.ts";
import { type NetworkSettings, networkSettings } from "./network-settings.ts";

/** Where Knative keeps its ConfigMaps, and so do we. */
export const settingsNamespace = "knative-serving";

export interface Settings {
  autoscaler: AutoscalerSettings;
  defaults: DefaultSettings;
  gc: GcSettings;
  features: FeatureSettings;
  domain: DomainSettings;
  network: NetworkSettings;
}

const readers = {
  "config-autoscaler": (settings: Settings, data: Record<string, string>) => {
    settings.autoscaler = autoscalerSettings(data);
  },
  "config-defaults": (settings: Settings, data: Record<string, string>) => {
    settings.defaults = defaultSettings(data);
  },
  "config-gc": (settings: Settings, data: Record<string, string>) => {
    settings.gc = gcSettings(data);
  },
  "config-features": (settings: Settings, data: Record<string, string>) => {
    settings.features = featureSettings(data);
  },
  "config-domain": (settings: Settings, data: Record<string, string>) => {
    settings.domain = domainSettings(data);
  },
  "config-network": (settings: Settings, data: Record<string, string>) => {
    settings.network = networkSettings(data);
  },
};

/** The ConfigMaps that are followed. */
export const settingsMaps: readonly string[] = Object.keys(readers);

export const initialSettings = (): Settings => ({
  autoscaler: autoscalerSettings(),
  defaults: defaultSettings(),
  gc: gcSettings(),
  features: featureSettings(),
  domain: domainSettings(),
  network: networkSettings(),
});

/**
 * The settings as the ConfigMaps have them now. A map that is missing has its defaults; one that is not valid is logged,
 * and what was valid before stays in effect.
 */
export class SettingsWatch {
  readonly current: Settings = initialSettings();
  readonly #informer: Informer<ConfigMap>;
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();

  constructor(client: KubeClient, clock: Clock, log: Logger) {
    this.#log = log;
    const options = { namespace: settingsNamespace, clock, log };
    this.#informer = new Informer(client, resources.configMaps, options);
    this.#informer.onChange((change) => this.#use(change));
  }

  get synced(): Promise<void> {
    return this.#informer.synced;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#informer.run(signal);
  }

  #use({ type, object }: Change<ConfigMap>): void {
    const name = object.metadata.name ?? "";
    if (!Object.hasOwn(readers, name)) return;
    try {
      const data = type === "deleted" ? {} : (object.data ?? {});
      readers[name as keyof typeof readers](this.current, data);
    } catch (error) {
      const fields = { configMap: `${settingsNamespace}/${name}`, error: messageOf(error) };
      this.#log.warn(fields, "a ConfigMap is not valid, what was set before stays in effect");
      return;
    }
    for (const listener of this.#listeners) listener();
  }
}
