/**
 * A setting with addresses, without the credentials in them: what is left is read by builds and Functions, and is not a
 * secret. Those of people belong into the Secret `serverless-package-registry-config`.
 */
export function withoutCredentials(value: string): string {
  // Up to the last @ of the authority: passwords are not always encoded as they should be.
  return value.replace(/(^|:\/\/)[^/\s]*@/g, "$1");
}
