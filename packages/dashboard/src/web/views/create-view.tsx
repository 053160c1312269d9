import { Empty } from "../ui/basics.tsx";
import { Frame } from "../ui/frame.tsx";

export function CreateView() {
  return (
    <Frame title="Create a Function">
      <Empty title="Not yet">…</Empty>
    </Frame>
  );
}
