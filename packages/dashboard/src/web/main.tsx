import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme } from "./ui/theme.ts";

applyTheme();
const root = document.getElementById("app");
if (root) render(<App />, root);
