import { type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import { Problem } from "./basics.tsx";

/** Code that was needed later has not arrived: the server is away, or another version of it has other files. */
export function Unloaded({ text }: { text: string }) {
  return (
    <Problem title="This part of the page could not be loaded" text={text}>
      <p class="row wrap">
        <span>
          Reload the page when the server can be reached again. What you have typed stays.
        </span>
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </p>
    </Problem>
  );
}

/** A component whose code, with what only it needs, is loaded when it is first shown. */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Later(props: Props) {
    const [, setLoaded] = useState(loaded !== undefined);
    const [failure, setFailure] = useState("");
    useEffect(() => {
      if (loaded) return;
      const show = async () => {
        try {
          loaded = await load();
          setLoaded(true);
        } catch (error) {
          setFailure(messageOf(error));
        }
      };
      void show();
    }, []);
    const View = loaded;
    if (View) return <View {...props} />;
    if (!failure) return null;
    return <Unloaded text={failure} />;
  };
}
