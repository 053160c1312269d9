import { byteLength } from "./byte-length.ts";
import { defaultRuntime, findRuntime } from "./runtimes.ts";
import { sourceImageMaxLength, sourceImagePattern } from "./source-image.ts";
import { type FunctionSpec, type GitRepositorySource, type InlineSource } from "./types.ts";
import { type FieldError } from "./field-error.ts";

/** What a ConfigMap holds. */
const maxInlineBytes = 1024 * 1024;

export function validateSource(spec: FunctionSpec): FieldError[] {
  const { inline, gitRepository, image } = spec.source;
  const given = [inline, gitRepository, image].filter((each) => each !== undefined).length;
  if (given > 1 && image !== undefined)
    return [{ path: "spec.source", message: "Use one of inline, gitRepository and image" }];
  if (image !== undefined) return validateImage(image);
  if (inline && !gitRepository) return validateInline(inline, spec.runtime ?? defaultRuntime);
  if (gitRepository && !inline) return validateGit(gitRepository);
  return [{ path: "spec.source", message: "Use GitRepository or Inline source" }];
}

function validateImage(image: string): FieldError[] {
  if (image.length <= sourceImageMaxLength && new RegExp(sourceImagePattern).test(image)) return [];
  const message =
    "invalid source.image value: it must be the name of an image with its digest, REPOSITORY@sha256:DIGEST";
  return [{ path: "spec.source.image", message }];
}

function validateInline(
  { source, dependencies = "" }: InlineSource,
  runtime: string,
): FieldError[] {
  const errors: FieldError[] = [];
  if (!source) {
    const path = "spec.source.inline.source";
    errors.push({ path, message: "invalid source.inline.source value: source must not be empty" });
  }
  const bytes = byteLength(source ?? "") + byteLength(dependencies);
  if (bytes > maxInlineBytes) {
    const message =
      `invalid source.inline value: source and dependencies have ${bytes} bytes together, ` +
      `at most ${maxInlineBytes} are allowed`;
    errors.push({ path: "spec.source.inline", message });
  }
  // Only the braces, as ever: whether it is a package.json, the installer says with the build.
  const text = dependencies.trim();
  const braces = text.startsWith("{") && text.endsWith("}");
  if (findRuntime(runtime)?.language === "nodejs" && text && !braces) {
    const message =
      "invalid source.inline.dependencies value: deps should start with '{' and end with '}'";
    errors.push({ path: "spec.source.inline.dependencies", message });
  }
  return errors;
}

function validateGit({ url, auth, baseDir, reference }: GitRepositorySource): FieldError[] {
  const path = "spec.source.gitRepository";
  const errors: FieldError[] = [];
  if (!isRepositoryUrl(url ?? "")) {
    const shown = redacted(url ?? "");
    const message = `source.gitRepository.URL: ${shown} is neither an absolute URL nor an SSH address`;
    errors.push({ path: `${path}.url`, message });
  }
  if (!baseDir?.trim()) {
    errors.push({
      path: `${path}.baseDir`,
      message: "BaseDir is required and cannot be empty",
    });
  }
  if (!reference?.trim()) {
    errors.push({
      path: `${path}.reference`,
      message: "Reference is required and cannot be empty",
    });
  }
  if (auth && !["basic", "key"].includes(auth.type)) {
    const message = `source.gitRepository.auth.type must be basic or key, not ${auth.type}`;
    errors.push({ path: `${path}.auth.type`, message });
  }
  if (auth && !auth.secretName?.trim()) {
    const message = "SecretName is required and cannot be empty";
    errors.push({ path: `${path}.auth.secretName`, message });
  }
  return errors;
}

/** `git@host:path` and the like, or anything with a scheme, or an absolute path, as ever. */
function isRepositoryUrl(url: string): boolean {
  if (url.length > 4096 || /\s/.test(url)) return false;
  if (/^(git|ssh)(@|:\/\/)[^/]/.test(url) || /^[\w.-]+@[\w.-]+:./.test(url)) return true;
  return url.startsWith("/") || URL.canParse(url);
}

/** A URL without the password that it may hold. */
function redacted(url: string): string {
  return url.slice(0, 200).replace(/\/\/[^@/]*@/, "//***@");
}
