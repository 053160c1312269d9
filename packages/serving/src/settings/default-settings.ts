import { ConfigReader, SettingsError } from "./config-reader.ts";

/** `config-defaults` (knative.dev/serving/pkg/apis/config/defaults.go). */
export interface DefaultSettings {
  timeoutSeconds: number;
  maxTimeoutSeconds: number;
  responseStartTimeoutSeconds: number;
  idleTimeoutSeconds: number;
  containerConcurrency: number;
  maxContainerConcurrency: number;
  allowContainerConcurrencyZero: boolean;
  /** Undefined leaves it to Kubernetes. */
  enableServiceLinks: boolean | undefined;
  /** With `{{.Name}}` for the name of the Service or Configuration. */
  containerName: string;
  initContainerName: string;
  requests: Readonly<Record<string, string>>;
  limits: Readonly<Record<string, string>>;
}

/**
 * Knative's is 600. A Function may have an hour (`spec.timeoutSeconds`), in both ways of serving, and on demand some seconds
 * more for the way of the answer that its runtime gives at the limit.
 */
const longestSeconds = 3_605;
const resourceNames = ["cpu", "memory", "ephemeral-storage"];

export function defaultSettings(data: Readonly<Record<string, string>> = {}): DefaultSettings {
  const read = new ConfigReader(data);
  const seconds = { min: 0 };
  const timeoutSeconds = read.integer("revision-timeout-seconds", 300, seconds);
  const links = data["enable-service-links"]?.toLowerCase();
  const settings: DefaultSettings = {
    timeoutSeconds,
    maxTimeoutSeconds: read.integer("max-revision-timeout-seconds", longestSeconds, seconds),
    responseStartTimeoutSeconds: read.integer(
      "revision-response-start-timeout-seconds",
      timeoutSeconds,
      seconds,
    ),
    idleTimeoutSeconds: read.integer("revision-idle-timeout-seconds", 0, seconds),
    containerConcurrency: read.integer("container-concurrency", 0, seconds),
    maxContainerConcurrency: read.integer("container-concurrency-max-limit", 1000, { min: 1 }),
    allowContainerConcurrencyZero: read.flag("allow-container-concurrency-zero", true),
    enableServiceLinks:
      links === "true" ? true : links === undefined || links === "false" ? false : undefined,
    containerName: read.text("container-name-template", "user-container"),
    initContainerName: read.text("init-container-name-template", "init-container"),
    requests: resourcesOf(read, "request"),
    limits: resourcesOf(read, "limit"),
  };
  check(settings);
  return settings;
}

function resourcesOf(read: ConfigReader, kind: string): Record<string, string> {
  return Object.fromEntries(
    resourceNames.flatMap((name) => {
      const value = read.quantity(`revision-${name}-${kind}`);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function check(settings: DefaultSettings): void {
  const { timeoutSeconds, maxTimeoutSeconds } = settings;
  if (timeoutSeconds > maxTimeoutSeconds)
    throw new SettingsError(
      `revision-timeout-seconds (${timeoutSeconds}) cannot be greater than max-revision-timeout-seconds (${maxTimeoutSeconds})`,
    );
  if (settings.responseStartTimeoutSeconds > timeoutSeconds)
    throw new SettingsError(
      `revision-response-start-timeout-seconds (${settings.responseStartTimeoutSeconds}) cannot be greater than revision-timeout-seconds (${timeoutSeconds})`,
    );
  if (settings.idleTimeoutSeconds > timeoutSeconds)
    throw new SettingsError(
      `revision-idle-timeout-seconds (${settings.idleTimeoutSeconds}) cannot be greater than revision-timeout-seconds (${timeoutSeconds})`,
    );
  if (settings.containerConcurrency > settings.maxContainerConcurrency)
    throw new SettingsError(
      `container-concurrency = ${settings.containerConcurrency} is above container-concurrency-max-limit`,
    );
}
