/** Where a source is an image: its name with the digest of its manifest (docs/adr/0019-sources-as-images.md). */
export const sourceImagePattern = "^[a-zA-Z0-9][-a-zA-Z0-9._:/]*@sha256:[0-9a-f]{64}$";
export const sourceImageMaxLength = 512;
