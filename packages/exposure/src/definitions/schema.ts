/** A structural schema, as far as the definitions here need it (apiextensions.k8s.io/v1 JSONSchemaProps). */
export interface Schema {
  type?: "object" | "array" | "string" | "integer" | "boolean";
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  required?: string[];
  enum?: string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  pattern?: string;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-validations"?: { rule: string; message: string }[];
}

export const boolean: Schema = { type: "boolean" };
export const text = (maxLength?: number): Schema => ({
  type: "string",
  ...(maxLength === undefined ? {} : { maxLength }),
});
export const list = (items: Schema, maxItems: number, minItems?: number): Schema => ({
  type: "array",
  items,
  maxItems,
  ...(minItems === undefined ? {} : { minItems }),
});
export const map = (values: Schema, maxProperties: number): Schema => ({
  type: "object",
  additionalProperties: values,
  maxProperties,
});
export const object = (properties: Record<string, Schema>, required: string[] = []): Schema => ({
  type: "object",
  properties,
  ...(required.length > 0 ? { required } : {}),
});
export const integer = (minimum: number, maximum?: number): Schema => ({
  type: "integer",
  minimum,
  ...(maximum === undefined ? {} : { maximum }),
});
/** Of any content: what is in it is checked elsewhere. */
export const anything: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
export const rule = (expression: string, message: string) => ({
  "x-kubernetes-validations": [{ rule: expression, message }],
});
