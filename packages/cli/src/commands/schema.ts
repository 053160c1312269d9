import { kymaConfigName } from "../kyma/config-yaml.ts";
import { kymaConfigSchema } from "../kyma/schema.ts";
import { configName, configSchema } from "../project/schema.ts";
import { UserError } from "../user-error.ts";

const schemas: Readonly<Record<string, object>> = {
  [configName]: configSchema,
  [kymaConfigName]: kymaConfigSchema,
};

export function printSchema(file: string = configName): void {
  if (!Object.hasOwn(schemas, file))
    throw new UserError(
      `${file} is not a file with a schema`,
      `use one of ${Object.keys(schemas).join(", ")}`,
    );
  console.log(JSON.stringify(schemas[file], null, 2));
}
