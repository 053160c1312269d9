import { Empty } from "../ui/basics.tsx";

export function NotFoundView() {
  return (
    <Empty
      title="This page does not exist"
      actions={
        <a class="button primary" href="/functions">
          All Functions
        </a>
      }
    >
      The address may be mistyped, or what it named has been deleted.
    </Empty>
  );
}
