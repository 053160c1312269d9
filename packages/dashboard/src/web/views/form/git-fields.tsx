import { type GitRepositorySource } from "@spry/function/browser";
import { Field } from "../../ui/basics.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { type FormProps, problemAt } from "./form.ts";

const authKinds = {
  none: "none",
  basic: "user and password or token",
  key: "SSH key",
} as const;

export const emptyRepository: GitRepositorySource = { url: "", reference: "main", baseDir: "" };

/** The repository with the source, and how to log in there. */
export function GitFields({ spec, onChange, problems, readOnly }: FormProps) {
  const git = spec.source.gitRepository ?? emptyRepository;
  const set = (part: Partial<GitRepositorySource>) =>
    onChange({ ...spec, source: { gitRepository: { ...git, ...part } } });
  const setAuth = (type: string) => {
    const { auth, ...rest } = git;
    const source =
      type === "none"
        ? rest
        : { ...rest, auth: { type: type as "basic" | "key", secretName: auth?.secretName ?? "" } };
    onChange({ ...spec, source: { gitRepository: source } });
  };
  const error = (field: string) => problemAt(problems, `spec.source.gitRepository.${field}`);
  return (
    <fieldset class="stack" disabled={readOnly}>
      <legend>Git repository</legend>
      <TextField
        label="URL"
        hint="https:// or ssh"
        error={error("url")}
        placeholder="https://github.com/you/functions.git"
        value={git.url}
        onChange={(text) => set({ url: text })}
      />
      <div class="two">
        <TextField
          label="Branch, tag or commit"
          error={error("reference")}
          value={git.reference}
          onChange={(text) => set({ reference: text })}
        />
        <TextField
          label="Directory"
          hint="empty or /: the repository’s root"
          error={error("baseDir")}
          value={git.baseDir}
          onChange={(text) => set({ baseDir: text })}
        />
      </div>
      <div class="two">
        <Field label="Login">
          {(ids) => (
            <select
              {...ids}
              value={git.auth?.type ?? "none"}
              onChange={({ currentTarget }) => setAuth(currentTarget.value)}
            >
              {Object.entries(authKinds).map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
        {git.auth && (
          <TextField
            label="Secret"
            hint="username and password, or key"
            error={error("auth")}
            value={git.auth?.secretName ?? ""}
            onChange={(text) => git.auth && set({ auth: { ...git.auth, secretName: text } })}
          />
        )}
      </div>
    </fieldset>
  );
}
