/**
 * The composition root of the embedded platform: wires the rooms of one machine together, in the
 * order in which they need each other, and takes them down in reverse.
 */
import { randomBytes } from "node:crypto";
import { createServer as createHttpsServer } from "node:https";
import path from "node:path";
import { type ApiServer, createApiServer } from "@spry/apiserver";
import {
  admissionConfigurations,
  createAdmission,
  startFunctionController,
} from "@spry/controller";
import { createRegistry, RegistryClient } from "@spry/image";
import { KubeClient, type KubeObject, type Logger, type Transport } from "@spry/kube";
import { createNode, type MachineNode, processSandbox, startControllers } from "@spry/machine";
import { UserError } from "../user-error.ts";
import { version } from "../version.ts";
import { ensureCertificates, type Certificates } from "./certificates.ts";
import { type DataDir, readJson, writeAtomically } from "./data-dir.ts";
import { type GatewayProcess, startGatewayProcess } from "./gateway-process.ts";
import { kubeconfigFor } from "./kubeconfig.ts";
import { ensureSystemImages } from "./system-images.ts";
import { applySystemObjects, systemNamespace } from "./system-objects.ts";

export interface PlatformOptions {
  dataDir: DataDir;
  apiPort: number;
  gatewayPort: number;
  registryPort: number;
  log: Logger;
}

export interface Endpoints {
  apiServer: string;
  gateway: string;
  registry: string;
  dashboard: string | null;
  pid: number;
}
