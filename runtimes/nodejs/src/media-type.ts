/** Short names that Express' users write for media types. */
const types: Record<string, string> = {
  bin: "application/octet-stream",
  css: "text/css",
  csv: "text/csv",
  form: "application/x-www-form-urlencoded",
  gif: "image/gif",
  html: "text/html",
  ico: "image/vnd.microsoft.icon",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript",
  json: "application/json",
  md: "text/markdown",
  mjs: "text/javascript",
  mp4: "video/mp4",
  multipart: "multipart/*",
  pdf: "application/pdf",
  png: "image/png",
  svg: "image/svg+xml",
  text: "text/plain",
  txt: "text/plain",
  urlencoded: "application/x-www-form-urlencoded",
  wasm: "application/wasm",
  webp: "image/webp",
  xml: "application/xml",
  yaml: "text/yaml",
  zip: "application/zip",
};

/** `json`, `.json` or `a/file.json` → `application/json`; a media type is returned as it is. */
export function mediaTypeOf(name: string): string {
  if (name.includes("/") && !/\/[^/]*\.\w+$/.test(name)) return name;
  return types[name.slice(name.lastIndexOf(".") + 1).toLowerCase()] ?? "application/octet-stream";
}

/** The type of a `Content-Type` header without parameters, in lower case. */
export function essenceOf(contentType: string | undefined): string {
  return (contentType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

export function charsetOf(contentType: string | undefined): string {
  return /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? "")?.[1]?.toLowerCase() ?? "utf-8";
}

/** Text gets a charset, as Express gives it. */
export function withCharset(mediaType: string): string {
  const isText = /^text\/|^application\/(?:json|javascript)\b|\+(?:json|xml)\b/.test(mediaType);
  return isText && !/;\s*charset/i.test(mediaType) ? `${mediaType}; charset=utf-8` : mediaType;
}

/** Whether a content type is of a type such as `json`, `text/*`, `+json` or `application/json`. */
export function matchesType(contentType: string, type: string): boolean {
  const essence = essenceOf(contentType);
  if (type.startsWith("+")) return essence.endsWith(type);
  const wanted = mediaTypeOf(type);
  return wanted.endsWith("/*") ? essence.startsWith(wanted.slice(0, -1)) : essence === wanted;
}
