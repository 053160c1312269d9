import { type FieldError } from "@spry/function/browser";
import { Field } from "../../ui/basics.tsx";
import { NamespaceChoice } from "../../ui/namespace-choice.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { problemAt } from "../form/form.ts";
import { type NewFunctionProps } from "./new-function-props.ts";

/** The Function's name and namespace. An empty name is a problem only after an attempt to create the Function. */
export function NameFields({
  made: { name, namespace },
  change,
  problems,
  wasTried,
}: NewFunctionProps & { problems: readonly FieldError[]; wasTried: boolean }) {
  const problem =
    name === "" ? "a name is required" : shortName(problemAt(problems, "metadata.name"));
  return (
    <div class="two">
      <TextField
        label="Name"
        hint="part of its URL: small letters, digits and -"
        error={wasTried || name !== "" ? problem : undefined}
        autocomplete="off"
        value={name}
        onChange={(text) => change({ name: text })}
      />
      <Field label="Namespace">
        {({ id }) => (
          <NamespaceChoice
            id={id}
            value={namespace}
            hasSystem={false}
            onChange={(chosen) => change({ namespace: chosen ?? "default" })}
          />
        )}
      </Field>
    </div>
  );
}

/** The message of the contract is long, and repeats the path. */
const shortName = (problem: string | undefined): string | undefined =>
  problem === undefined
    ? undefined
    : "use at most 63 small letters, digits and -, begin with a letter, and end with a letter or digit";
