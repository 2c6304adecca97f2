// An app with CDK's provider framework: one provider that answers at once and one that is waited for, with a custom resource
// each. node app.js DIRECTORY
const cdk = require('aws-cdk-lib');
const lambda = require('aws-cdk-lib/aws-lambda');
const iam = require('aws-cdk-lib/aws-iam');
const cr = require('aws-cdk-lib/custom-resources');
const path = require('path');

const outdir = process.argv[2];
const app = new cdk.App({ outdir, analyticsReporting: false });
const stack = new cdk.Stack(app, 'Framework', { env: { account: '123456789012', region: 'us-east-1' } });

function handler(name) {
  const fn = new lambda.Function(stack, name, {
    runtime: lambda.Runtime.NODEJS_22_X,
    handler: 'index.' + name,
    timeout: cdk.Duration.minutes(1),
    code: lambda.Code.fromAsset(path.join(__dirname, 'handler')),
  });
  fn.addToRolePolicy(new iam.PolicyStatement({ actions: ['ssm:*'], resources: ['*'] }));
  return fn;
}

const onEvent = handler('onEvent');
const atOnce = new cr.Provider(stack, 'AtOnce', { onEventHandler: onEvent });
const waited = new cr.Provider(stack, 'Waited', {
  onEventHandler: onEvent,
  isCompleteHandler: handler('isComplete'),
  queryInterval: cdk.Duration.seconds(1),
  totalTimeout: cdk.Duration.seconds(5),
});
for (const [name, provider] of Object.entries({ Quick: atOnce, Slow: waited })) {
  const resource = new cdk.CustomResource(stack, name, {
    serviceToken: provider.serviceToken,
    resourceType: 'Custom::' + name,
    serviceTimeout: cdk.Duration.seconds(60),
    properties: { Kind: name.toLowerCase() },
  });
  for (const attribute of ['Color', 'Request']) {
    new cdk.CfnOutput(stack, name + attribute, { value: resource.getAttString(attribute) });
  }
  new cdk.CfnOutput(stack, name + 'Id', { value: resource.ref });
}
app.synth();
