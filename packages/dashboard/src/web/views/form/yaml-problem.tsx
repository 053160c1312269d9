/** Why YAML as it is typed means nothing yet; the editor marks the line. */
export function YamlProblem({ line, message }: { line: number; message: string }) {
  return (
    <p class="error-text" role="status">
      Line {line}: {message}
    </p>
  );
}
