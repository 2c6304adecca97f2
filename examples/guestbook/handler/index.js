// The guestbook. One function answers the HTTP API and works off the queue: a posted entry goes into the
// queue at once and into the table a little later.
const { DynamoDBClient, PutItemCommand, ScanCommand } = require('@aws-sdk/client-dynamodb');
const { SQSClient, SendMessageCommand } = require('@aws-sdk/client-sqs');

const db = new DynamoDBClient({});
const sqs = new SQSClient({});

exports.handler = async (event) => {
  if (event.Records) return store(event.Records);
  const { method } = event.requestContext.http;
  return method === 'POST' ? sign(event) : list();
};

async function list() {
  const { Items = [] } = await db.send(new ScanCommand({ TableName: process.env.TABLE_NAME, Limit: 50 }));
  const entries = Items.map((i) => ({ id: i.id.S, name: i.name.S, text: i.text.S }));
  return reply(200, { message: process.env.MESSAGE, entries });
}

async function sign(event) {
  let entry;
  try {
    entry = JSON.parse(event.body || '');
  } catch {
    return reply(400, { error: 'the body is not JSON' });
  }
  if (!entry.name || !entry.text) return reply(400, { error: 'name and text are needed' });
  const { MessageId } = await sqs.send(new SendMessageCommand({
    QueueUrl: process.env.QUEUE_URL,
    MessageBody: JSON.stringify({ name: String(entry.name), text: String(entry.text) }),
  }));
  return reply(202, { id: MessageId });
}

// store writes queued entries. A record that fails is reported alone, so that the others are not repeated.
async function store(records) {
  const batchItemFailures = [];
  for (const r of records) {
    try {
      const { name, text } = JSON.parse(r.body);
      await db.send(new PutItemCommand({
        TableName: process.env.TABLE_NAME,
        Item: { id: { S: r.messageId }, name: { S: name }, text: { S: text } },
      }));
    } catch (err) {
      console.error(`entry ${r.messageId}: ${err.message}`);
      batchItemFailures.push({ itemIdentifier: r.messageId });
    }
  }
  return { batchItemFailures };
}

const reply = (statusCode, body) => ({
  statusCode,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
