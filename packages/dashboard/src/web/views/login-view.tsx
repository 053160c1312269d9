import { type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { info } from "../state/info.ts";
import { placesOfLogin } from "../session/provider.ts";
import { goToProvider, logInWith, loginProblem } from "../session/login.ts";
import { Dialog, Field } from "../ui/basics.tsx";

/** The whole page, before the first login. */
export function LoginView() {
  return (
    <div class="login">
      <main class="panel stack loose">
        <div class="row">
          <img src="/assets/icon.svg" alt="" width={32} height={32} />
          <h1>Log in to Spry</h1>
        </div>
        <LoginForm
          provider={(name) => (
            <button type="button" class="primary" onClick={() => void goToProvider()}>
              Log in with {name}
            </button>
          )}
        />
      </main>
    </div>
  );
}

/** Shown over the views when a login has ended: they stay as they are. */
export function LoginDialog() {
  return (
    <Dialog title="Log in again" onClose={() => {}}>
      <p class="muted">Nothing that you have typed is lost.</p>
      <LoginForm
        // In another tab, which gives its login to this one: what is typed here stays.
        provider={(name) => (
          <a class="button primary" href={placesOfLogin.begin} target="_blank" rel="noopener">
            Log in with {name}
          </a>
        )}
      />
      <p />
    </Dialog>
  );
}

function LoginForm({ provider }: { provider: (name: string) => ComponentChildren }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      setProblem(await logInWith(token.trim()));
    } catch {
      setProblem("the dashboard's server cannot be reached");
    } finally {
      setBusy(false);
    }
  };
  const hasLinks = info.value?.hasLinks ?? false;
  const name = info.value?.provider;
  return (
    <div class="stack loose">
      {loginProblem.value && (
        <p class="error-text" role="alert">
          {sentence(loginProblem.value)}
        </p>
      )}
      {hasLinks && (
        <div class="stack tight">
          <h2>On this machine</h2>
          <p class="muted">
            Run <code>{info.value?.loginCommand}</code> in the platform’s directory: it opens this
            page, logged in.
          </p>
        </div>
      )}
      {name && <div>{provider(name)}</div>}
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <Field
          label={hasLinks || name ? "Or with a token" : "Token"}
          hint={
            <>
              For example of a ServiceAccount: <code>kubectl create token NAME</code>
            </>
          }
          error={problem}
        >
          {(ids) => (
            <input
              {...ids}
              type="password"
              autocomplete="off"
              value={token}
              onInput={({ currentTarget }) => setToken(currentTarget.value)}
            />
          )}
        </Field>
        <div>
          <button
            class={name ? "" : "primary"}
            type="submit"
            disabled={isBusy || token.trim() === ""}
          >
            Log in
          </button>
        </div>
      </form>
    </div>
  );
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
