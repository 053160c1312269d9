import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { importFile } from "./import-file.ts";

let home = "";
afterEach(() => rmSync(home, { recursive: true, force: true }));

function imported(name: string, text: string) {
  home = mkdtempSync(path.join(tmpdir(), "spry-import-"));
  writeFileSync(path.join(home, name), text);
  return importFile(path.join(home, name)).map(({ config, remarks }) => ({ config, remarks }));
}

test("func.yaml: each setting without a counterpart is named", () => {
  const [found] = imported(
    "func.yaml",
    `specVersion: 0.36.0
name: orders
runtime: node
build: { buildEnvs: [{ name: X, value: y }] }
run:
  envs: [{ name: KEY, value: "{{ secret:sec:A }}" }, { name: HERE, value: "{{ env:HOME }}" }]
deploy: { options: { scale: { max: 4 }, resources: { limits: { memory: 256Mi } } } }
`,
  );
  expect(found).toEqual({
    config: {
      name: "orders",
      runtime: "nodejs24",
      env: { KEY: { secret: "sec", key: "A" }, HERE: "" },
      scale: { max: 4 },
    },
    remarks: [
      "the variable HERE has this machine's HOME at each deployment: write its value, or a Secret",
      "variables of the build are not used",
      "resources are not used: choose a profile in spry.yaml, such as `profile: M`",
    ],
  });
});

test("stack.yml: what the cron connector calls has a schedule, other topics are named", () => {
  const found = imported(
    "stack.yml",
    `functions:
  clean:
    lang: python3-http
    annotations: { topic: cron-function, schedule: "*/5 * * * *" }
  paid:
    lang: node20
    limits: { memory: 128Mi }
    annotations: { topic: payments, owner: shop }
`,
  );
  expect(found).toEqual([
    {
      config: {
        name: "clean",
        runtime: "python312",
        schedules: [{ name: "cron", cron: "*/5 * * * *" }],
      },
      remarks: [],
    },
    {
      config: { name: "paid", runtime: "nodejs24", annotations: { owner: "shop" } },
      remarks: [
        "resources are not used: choose a profile in spry.yaml, such as `profile: M`",
        "the topic payments has no counterpart: subscribe with a Subscription",
      ],
    },
  ]);
});

test.each([
  [
    "func.yaml",
    "specVersion: 0.36.0\nrun:\n  envs:\n    - name: A\n      value: 1.10\n    - { name: B, value: 00123 }\n",
  ],
  ["stack.yml", "functions:\n  one:\n    lang: node\n    environment: { A: 1.10, B: 00123 }\n"],
  [
    "config.yaml",
    "name: a\nruntime: nodejs24\nsource: { sourceType: inline }\nenv: [{ name: A, value: 1.10 }, { name: B, value: 00123 }]\n",
  ],
])("%s: a number in a variable is text as it is written", (name, text) => {
  expect(imported(name, text)[0]?.config.env).toEqual({ A: "1.10", B: "00123" });
});

test("serverless.yml: handlers of any name are those of AWS Lambda", () => {
  const found = imported(
    "serverless.yml",
    `service: users
provider:
  name: aws
  runtime: nodejs20.x
  region: eu-central-1
  stage: \${opt:stage, 'dev'}
  environment: { TABLE: "\${self:custom.table}", VERSION: 1.10, ARN: !GetAtt Users.Arn }
custom: { table: "users-\${sls:stage}" }
functions:
  createUser:
    handler: src/users.create
    memorySize: 300
    timeout: 20
    environment: { KEY: "\${ssm:/key}", LOUD: true }
    events:
      - httpApi: "POST /users"
      - http: { path: users, method: post }
  cleanUp:
    handler: clean.run
    events:
      - schedule: rate(5 minutes)
      - schedule: { rate: cron(0 12 ? * 2-6 *) }
      - sqs: { arn: !GetAtt Queue.Arn }
resources:
  Resources: { Users: { Type: AWS::DynamoDB::Table } }
`,
  );
  expect(found).toEqual([
    {
      config: {
        name: "create-user",
        runtime: "nodejs24",
        handler: "src/users.create",
        dialect: "lambda",
        env: {
          AWS_REGION: "eu-central-1",
          TABLE: "users-dev",
          VERSION: "1.10",
          ARN: "",
          KEY: "",
          LOUD: "true",
          FUNC_TIMEOUT: "20",
        },
        profile: "M",
      },
      remarks: [
        "resources are not created: what the code uses of AWS has to exist",
        "the variable ARN is !GetAtt Users.Arn there: write its value, or a Secret",
        "the variable KEY is ${ssm:/key} there: write its value, or a Secret",
      ],
    },
    {
      config: {
        name: "clean-up",
        runtime: "nodejs24",
        handler: "clean.run",
        dialect: "lambda",
        env: { AWS_REGION: "eu-central-1", TABLE: "users-dev", VERSION: "1.10", ARN: "" },
        schedules: [
          { name: "cron", cron: "*/5 * * * *" },
          { name: "cron-2", cron: "0 12 * * 1-5" },
        ],
      },
      remarks: [
        "the variable ARN is !GetAtt Users.Arn there: write its value, or a Secret",
        "schedules call it with an event of an HTTP request, and not with that of AWS",
        "events of sqs have no counterpart: subscribe with a Subscription, whose events arrive as HTTP requests",
      ],
    },
  ]);
});

test("serverless.yml of Python; one for another provider, and one with an image, are refused", () => {
  const [python] = imported(
    "serverless.yml",
    "service: a\nframeworkVersion: '4'\nprovider: { name: aws, runtime: python3.12 }\nplugins: [serverless-offline, serverless-step-functions]\nfunctions: { hello: { handler: handler.hello } }\n",
  );
  expect(python).toEqual({
    config: { name: "hello", runtime: "python312", handler: "handler.hello", dialect: "lambda" },
    remarks: ["the plugins serverless-step-functions have no effect"],
  });
  expect(() =>
    imported(
      "serverless.yml",
      "service: a\nprovider: google\nfunctions: { hello: { handler: http } }\n",
    ),
  ).toThrow("is for the provider google, and only those for aws are imported");
  expect(() =>
    imported(
      "serverless.yml",
      "service: a\nprovider: aws\nfunctions: { hello: { image: a/b:c } }\n",
    ),
  ).toThrow("has no handler for hello");
});

test("a template of AWS SAM: its functions, with their directories", () => {
  home = mkdtempSync(path.join(tmpdir(), "spry-import-"));
  const file = path.join(home, "template.yaml");
  writeFileSync(
    file,
    `AWSTemplateFormatVersion: '2010-09-09'
Transform: AWS::Serverless-2016-10-31
Globals:
  Function: { Timeout: 3, Environment: { Variables: { LEVEL: info, TABLE: !Ref Table } } }
Resources:
  HelloWorldFunction:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: hello-world/
      Handler: app.lambdaHandler
      Runtime: nodejs22.x
      Events: { HelloWorld: { Type: Api, Properties: { Path: /hello, Method: get } } }
  Report:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: report
      Handler: app.handle
      Runtime: python3.13
      MemorySize: 4096
      Policies:
        - DynamoDBReadPolicy: { TableName: !Ref Table }
      Layers: [!Sub "arn:\${X}"]
      Events: { Daily: { Type: Schedule, Properties: { Schedule: cron(30 4 * * ? *) } } }
  Table: { Type: AWS::DynamoDB::Table }
Outputs: { Url: { Value: !Sub "https://\${Api}/" } }
`,
  );
  expect(importFile(file)).toEqual([
    {
      directory: path.join(home, "hello-world"),
      config: {
        name: "hello-world",
        runtime: "nodejs24",
        handler: "app.lambdaHandler",
        dialect: "lambda",
        env: { LEVEL: "info", TABLE: "", FUNC_TIMEOUT: "3" },
      },
      remarks: [
        "AWS::DynamoDB::Table are not created: what the code uses of AWS has to exist",
        "the variable TABLE is !Ref Table there: write its value, or a Secret",
      ],
    },
    {
      directory: path.join(home, "report"),
      config: {
        name: "report",
        runtime: "python312",
        handler: "app.handle",
        dialect: "lambda",
        env: { LEVEL: "info", TABLE: "", FUNC_TIMEOUT: "3" },
        profile: "XL",
        schedules: [{ name: "cron", cron: "30 4 * * *" }],
      },
      remarks: [
        "layers are not used: declare what they have as dependencies",
        "the variable TABLE is !Ref Table there: write its value, or a Secret",
        "schedules call it with an event of an HTTP request, and not with that of AWS",
        "4096 MB of memory are more than the largest profile has",
      ],
    },
  ]);
});
