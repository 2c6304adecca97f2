// The user's side of the provider framework: a thing is a parameter of Systems Manager, named after its kind and name.
const { SSMClient, PutParameterCommand, DeleteParameterCommand, GetParameterCommand } = require('@aws-sdk/client-ssm');

const ssm = new SSMClient({});

exports.onEvent = async (event) => {
  const { Kind, Name, Color, Do, Secret } = event.ResourceProperties;
  if (event.RequestType === 'Delete') {
    if (Do !== 'stick') await ssm.send(new DeleteParameterCommand({ Name: event.PhysicalResourceId }));
    return {};
  }
  if (Do === 'refuse') throw new Error('there is no such color');
  const id = `/things/${Kind}/${Name}`;
  await ssm.send(new PutParameterCommand({ Name: id, Value: `${Color} 0`, Type: 'String', Overwrite: true }));
  return { PhysicalResourceId: id, Data: { Color, Request: event.RequestType }, NoEcho: Secret === 'true' };
};

// A thing is complete when it has been asked about for the third time; one that is to hang, never; one that is deleted, at once.
exports.isComplete = async (event) => {
  const { Color, Do } = event.ResourceProperties;
  if (event.RequestType === 'Delete') return { IsComplete: true };
  if (Do === 'hang') return { IsComplete: false };
  const Name = event.PhysicalResourceId;
  const [, asked] = (await ssm.send(new GetParameterCommand({ Name }))).Parameter.Value.split(' ');
  await ssm.send(new PutParameterCommand({ Name, Value: `${Color} ${Number(asked) + 1}`, Type: 'String', Overwrite: true }));
  return { IsComplete: Number(asked) >= 2 };
};
