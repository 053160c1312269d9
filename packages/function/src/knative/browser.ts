export {
  type Configuration,
  type ConfigurationSpec,
  type DomainMapping,
  domainMappingConditions,
  domainMappings,
  knative,
  type KService,
  type Revision,
  type RevisionSpec,
  type RevisionTemplate,
  type Route,
  type RouteSpec,
  type TrafficTarget,
} from "./types.ts";
export { gatewaySliceManager, knativeAnnotations, knativeLabels } from "./labels.ts";
export {
  brokenPath,
  type BrokenRequest,
  type CountsLine,
  countsPath,
  drainedPath,
} from "./counts.ts";
