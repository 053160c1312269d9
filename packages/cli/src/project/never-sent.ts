/** What is never part of a source: made elsewhere, of a tool or an editor, or secret. */
import { closeSync, openSync, readSync } from "node:fs";

/** Folders and files of version control, installed packages and our own. No rule of the user brings them back. */
const always = /^(?:node_modules|\.git|\.hg|\.svn|\.venv|__pycache__|\.spry)$/;

/** Written by tools and editors while people work: an unchanged directory must not differ by them. */
const made: readonly RegExp[] = [
  // Operating systems.
  /^(?:\.DS_Store|\._.*|\.AppleDouble|\.Spotlight-V100|\.Trashes|\.directory)$/,
  /^(?:Thumbs\.db|ehthumbs(?:_vista)?\.db|[Dd]esktop\.ini)$/,
  /^\.(?:nfs|fuse_hidden)[0-9a-f]+$/,
  // Editors: settings, locks, swap and backup files, and what vim tries a folder with.
  /^(?:\.idea|\.vscode|\.vs|\.fleet|\.zed|\.history|.*\.sublime-workspace|.*\.code-workspace)$/,
  /^(?:\.#.*|#.*#|.*~|\.~lock\..*#|\..*\.sw[a-p]|.*\.sw[op]|4913|\..*\.un~|\..*\.kate-swp)$/,
  /^(?:\.goutputstream-.*|.*___jb_(?:tmp|old|bak)___)$/,
  /^venv$/,
  // Caches, reports and logs of tools.
  /^\.(?:pytest_cache|mypy_cache|ruff_cache|pytype|pyre|tox|nox|hypothesis|ipynb_checkpoints)$/,
  /^(?:.*\.py[co]|\.coverage|\.coverage\..*|\.nyc_output|\.eslintcache|\.stylelintcache|.*\.tsbuildinfo)$/,
  /^(?:\.turbo|\.parcel-cache|\.terraform|\.npm|\.pnpm-store)$/,
  /^\.?(?:npm-debug|yarn-debug|yarn-error|pnpm-debug|lerna-debug)\.log.*$/,
];

/** A name, or a path from a folder on. */
const secret: readonly RegExp[] = [
  // Values of environments.
  /^\.env(?:\..*)?$/,
  /^(?!example|sample|template).*\.env$/i,
  /^(?:\.envrc|\.flaskenv|\.dev\.vars(?:\..*)?|local\.settings\.json|\.secrets)$/,
  // Keys.
  /\.(?:pem|key|ppk|p8|pk8|p12|pfx|pkcs12|jks|keystore|kdbx?|ovpn)$/i,
  /^id_(?:rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk)$/,
  /^(?:\.ssh|\.gnupg|\.password-store|secring\.\w+)$/,
  // Logins of tools.
  /^(?:\.kube|\.aws|\.azure|\.gcloud|\.netrc|_netrc|\.git-credentials|\.pypirc|\.pgpass|\.my\.cnf)$/,
  /^(?:\.dockercfg|\.docker\/config\.json|\.config\/gcloud|\.boto|\.s3cfg|\.vault-token|\.vault_pass)$/,
  /^(?:.*kubeconfig(?:\.ya?ml|\.json|\.conf)?|.*\.kubeconfig|kubeconfig[._-].*)$/i,
  /^(?:.*service[-_]?account.*\.json|client_secret.*\.json|application_default_credentials\.json)$/i,
  /^(?:credentials\.json|.*\.publishsettings|\.htpasswd|\.htdigest)$/i,
  // What has them in it.
  /^(?:.*\.tfstate(?:\..*)?|.*\.tfvars(?:\.json)?|\..*_history)$/,
];

/** Examples are there to be shown. */
const harmless = /(?:^|[._-])(?:example|sample|template|dist)(?:\.(?:env|json|ya?ml|tfvars))?$/i;

/** Whether a path is never part of a source by its name. `always`: also where the user asks for it. */
export function keptBackAs(relative: string): "secret" | "made" | "always" | undefined {
  const name = relative.slice(relative.lastIndexOf("/") + 1);
  if (always.test(name)) return "always";
  if (made.some((pattern) => pattern.test(name))) return "made";
  if (harmless.test(name)) return undefined;
  const inFolder = relative.split("/").slice(-2).join("/");
  return secret.some((pattern) => pattern.test(name) || pattern.test(inFolder))
    ? "secret"
    : undefined;
}

/** The files of a virtual environment of Python are in a folder with this one. */
export const virtualEnvironmentMark = "pyvenv.cfg";

const headBytes = 512;
const wholeBytes = 1024 * 1024;
const privateKey = /^(?:-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File-|AGE-SECRET-KEY-1)/m;
const otherPem =
  /^-----BEGIN (?:TRUSTED |X509 )?(?:CERTIFICATE|[A-Z0-9 ]*PUBLIC KEY|CRL|CERTIFICATE REQUEST)/m;

/**
 * Whether a file holds a private key or the key of a service account, by its first line; undefined for one that does not say. What begins
 * as certificates do is read as a whole.
 */
export function secretInside(file: string, size: number): boolean | undefined {
  if (size === 0) return undefined;
  const head = read(file, headBytes)
    .replace(/^\u00EF\u00BB\u00BF/, "")
    .trimStart();
  if (/^\{\s*"type"\s*:\s*"service_account"/.test(head)) return true;
  const first = head.slice(0, Math.max(0, head.indexOf("\n")) || undefined);
  if (privateKey.test(first) || first.startsWith("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY"))
    return true;
  if (!/^(?:-----BEGIN |Bag Attributes|Certificate:)/.test(first)) return undefined;
  if (size > wholeBytes) return undefined;
  const whole = read(file, wholeBytes);
  if (privateKey.test(whole)) return true;
  return otherPem.test(whole) ? false : undefined;
}

function read(file: string, bytes: number): string {
  const descriptor = openSync(file, "r");
  try {
    const buffer = Buffer.alloc(bytes);
    return buffer.toString("latin1", 0, readSync(descriptor, buffer, 0, bytes, 0));
  } finally {
    closeSync(descriptor);
  }
}
