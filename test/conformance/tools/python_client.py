"""Uses the official Python client against the cluster of KUBECONFIG; names each step that went well."""

from os import path
from tempfile import TemporaryDirectory

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

config.load_kube_config()
core, apps, batch = client.CoreV1Api(), client.AppsV1Api(), client.BatchV1Api()
crds, custom = client.ApiextensionsV1Api(), client.CustomObjectsApi()
namespace = "python"


def refused(call, code):
    try:
        call()
    except ApiException as error:
        assert error.status == code, error
        return error.body
    raise AssertionError(f"not refused with {code}")


meta = client.V1ObjectMeta
core.create_namespace(client.V1Namespace(metadata=meta(name=namespace)))
container = client.V1Container(name="main", image="web:1", ports=[client.V1ContainerPort(container_port=80)])
template = client.V1PodTemplateSpec(metadata=meta(labels={"app": "web"}), spec=client.V1PodSpec(containers=[container]))
spec = client.V1DeploymentSpec(replicas=1, selector=client.V1LabelSelector(match_labels={"app": "web"}), template=template)
made = apps.create_namespaced_deployment(namespace, client.V1Deployment(metadata=meta(name="web"), spec=spec))
assert made.spec.strategy.rolling_update.max_surge == "25%", made.spec.strategy
assert made.metadata.creation_timestamp.year > 2000
print("create")

listed = apps.list_namespaced_deployment(namespace, field_selector="metadata.name=web", label_selector="!none")
assert [each.metadata.name for each in listed.items] == ["web"]
print("list")

seen = []
watching = watch.Watch()
version = core.list_namespaced_config_map(namespace).metadata.resource_version
settings = core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=meta(name="settings"), data={"a": "1"}))
core.patch_namespaced_config_map("settings", namespace, {"data": {"a": "2"}})
for event in watching.stream(core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=20):
    seen.append((event["type"], event["object"].data["a"]))
    if len(seen) == 2:
        watching.stop()
assert seen == [("ADDED", "1"), ("MODIFIED", "2")], seen
print("watch")

changed = apps.patch_namespaced_deployment("web", namespace, {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}})
assert changed.spec.template.spec.containers[0].ports[0].container_port == 80
scaled = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
assert scaled.spec.replicas == 3
print("patch")

settings.data["a"] = "3"
assert "the object has been modified" in refused(lambda: core.replace_namespaced_config_map("settings", namespace, settings), 409)
print("conflict")

assert "NotFound" in refused(lambda: core.read_namespaced_pod("nobody", namespace), 404)
assert "spec.replicas" in refused(lambda: apps.patch_namespaced_deployment("web", namespace, {"spec": {"replicas": -1}}), 422)
print("refusal")

for i in range(5):
    core.create_namespaced_secret(namespace, client.V1Secret(metadata=meta(name=f"s{i}"), string_data={"a": "b"}))
page = core.list_namespaced_secret(namespace, limit=2)
names = [each.metadata.name for each in page.items]
while page.metadata._continue:
    page = core.list_namespaced_secret(namespace, limit=2, _continue=page.metadata._continue)
    names += [each.metadata.name for each in page.items]
assert names == [f"s{i}" for i in range(5)], names
print("pages")

schema = client.V1JSONSchemaProps(type="object", properties={"spec": client.V1JSONSchemaProps(type="object", properties={"size": client.V1JSONSchemaProps(type="integer", minimum=1)})})
one = client.V1CustomResourceDefinitionVersion(name="v1", served=True, storage=True, schema=client.V1CustomResourceValidation(open_apiv3_schema=schema))
named = client.V1CustomResourceDefinitionNames(plural="widgets", singular="widget", kind="Widget", list_kind="WidgetList")
crds.create_custom_resource_definition(client.V1CustomResourceDefinition(metadata=meta(name="widgets.example.com"), spec=client.V1CustomResourceDefinitionSpec(group="example.com", scope="Namespaced", names=named, versions=[one])))
group = ("example.com", "v1", namespace, "widgets")
widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
custom.create_namespaced_custom_object(*group, widget)
custom.patch_namespaced_custom_object(*group, "w", {"spec": {"size": 2}})
assert custom.get_namespaced_custom_object(*group, "w")["spec"]["size"] == 2
assert "spec.size" in refused(lambda: custom.patch_namespaced_custom_object(*group, "w", {"spec": {"size": 0}}), 422)
print("definition")

anything = dynamic.DynamicClient(client.ApiClient())
widgets = anything.resources.get(api_version="example.com/v1", kind="Widget")
assert widgets.get(name="w", namespace=namespace).spec.size == 2
widget["spec"]["size"] = 5
applied = anything.server_side_apply(widgets, body=widget, name="w", namespace=namespace, field_manager="it", force_conflicts=True)
assert applied.spec.size == 5
deployments = anything.resources.get(api_version="apps/v1", kind="Deployment")
assert deployments.get(namespace=namespace, label_selector="").items[0].spec.replicas == 3
print("dynamic")

with TemporaryDirectory() as directory:
    file = path.join(directory, "objects.yaml")
    with open(file, "w", encoding="utf-8") as writing:
        writing.write(
            "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}\n---\n"
            "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}}}\n"
        )
    utils.create_from_yaml(client.ApiClient(), file, namespace=namespace)
assert core.read_namespaced_service("web", namespace).spec.cluster_ip
assert batch.read_namespaced_cron_job("c", namespace).spec.concurrency_policy == "Allow"
print("files")

# Nor a controller that would make the account.
core.create_namespaced_service_account(namespace, client.V1ServiceAccount(metadata=meta(name="default")))
core.create_namespaced_pod(namespace, client.V1Pod(metadata=meta(name="p"), spec=client.V1PodSpec(automount_service_account_token=False, containers=[client.V1Container(name="main", image="a")])))
# There is no node on which it could run.
assert "does not have a host assigned" in refused(lambda: core.read_namespaced_pod_log("p", namespace), 400)
print("log")

core.delete_namespaced_pod("p", namespace, grace_period_seconds=0)
core.delete_collection_namespaced_secret(namespace, label_selector="")
assert core.list_namespaced_secret(namespace).items == []
apps.delete_namespaced_deployment("web", namespace, propagation_policy="Orphan")
print("delete")
