import { signal } from "@preact/signals";
import { type ComponentType } from "preact";
import { segments } from "./router.ts";
import { isLoggedIn, resumeLogin } from "./session/login.ts";
import { loadInfo } from "./state/info.ts";
import { Boundary } from "./ui/boundary.tsx";
import { Frame } from "./ui/frame.tsx";
import { later } from "./ui/later.tsx";
import { LogOutDialog } from "./ui/log-out.tsx";
import { Palette } from "./ui/palette.tsx";
import { Toasts } from "./ui/toasts.tsx";
import { BuildsView } from "./views/builds-view.tsx";
import { CreateView } from "./views/create/create-view.tsx";
import { FunctionView } from "./views/function/function-view.tsx";
import { FunctionsView } from "./views/functions-view.tsx";
import { LoginDialog, LoginView } from "./views/login-view.tsx";
import { NodesView } from "./views/nodes-view.tsx";
import { NotFoundView } from "./views/not-found-view.tsx";

const ApiRulesView = later(async () => (await import("./views/api-rules-view.tsx")).ApiRulesView);
const CallsView = later(async () => (await import("./views/calls/calls-view.tsx")).CallsView);
const RegistryView = later(async () => (await import("./views/registry-view.tsx")).RegistryView);
const SubscriptionsView = later(
  async () => (await import("./views/events/subscriptions-view.tsx")).SubscriptionsView,
);
const SettingsView = later(async () => (await import("./views/settings-view.tsx")).SettingsView);

const isStarted = signal(false);
/** After the first login the views stay when a login ends, and so does what has been typed in them. */
const wasLoggedIn = signal(false);

/** Called before the first frame, which can be late: a link's code must be read before anything changes the address. */
export async function start(): Promise<void> {
  // What fails here is said where the login is; without a frame, nothing would be said at all.
  await Promise.allSettled([resumeLogin(), loadInfo()]);
  isStarted.value = true;
}

export function App() {
  if (isLoggedIn.value) wasLoggedIn.value = true;
  if (!isStarted.value) return null;
  if (!wasLoggedIn.value) return <LoginView />;
  return (
    <>
      <Boundary
        key={segments.value.slice(0, 3).join("/")}
        name="This view"
        around={(message) => <Frame title="Problem">{message}</Frame>}
      >
        <View />
      </Boundary>
      <Boundary name="The list of commands">
        <Palette />
      </Boundary>
      <Toasts />
      <LogOutDialog />
      {!isLoggedIn.value && <LoginDialog />}
    </>
  );
}

const others: Record<string, ComponentType> = {
  apirules: ApiRulesView,
  builds: BuildsView,
  calls: CallsView,
  events: SubscriptionsView,
  nodes: NodesView,
  registry: RegistryView,
  settings: SettingsView,
};

function View() {
  const [first = "functions", namespace, name, tab] = segments.value;
  if (first === "functions" && namespace !== undefined && name !== undefined)
    return (
      <FunctionView key={`${namespace}/${name}`} namespace={namespace} name={name} tab={tab} />
    );
  if (first === "functions" && namespace === undefined) return <FunctionsView />;
  if (first === "new") return <CreateView />;
  const Section = namespace === undefined ? others[first] : undefined;
  if (Section) return <Section />;
  return (
    <Frame title="Not found">
      <NotFoundView />
    </Frame>
  );
}
