// Sends one message as the owner and waits for the posted answer: node first_message.mjs URL, with the owner's token in
// PA_OWNER_TOKEN. Prints both; ends with 1 when no answer comes. Used by the set-up proof.
const [url] = process.argv.slice(2);
const token = process.env.PA_OWNER_TOKEN;
const TEXT = 'Hello, are you there?';
// One attempt at a reply takes at most four minutes.
const ANSWER_MS_MAX = 240_000;

async function ask(query, variables) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  const body = await response.json();
  if (!response.ok || body.errors) throw new Error(`HTTP ${response.status}: ${JSON.stringify(body)}`);
  return body.data;
}

const { sendMessage } = await ask(
  `mutation ($input: SendMessageInput!) {
     sendMessage(input: $input) { message { id } decided userErrors { code message } } }`,
  { input: { requestKey: `first-message-${Date.now()}`, text: TEXT } },
);
if (!sendMessage.message) throw new Error(`not accepted: ${JSON.stringify(sendMessage)}`);
console.log(`sent:     ${TEXT}`);

const deadline = Date.now() + ANSWER_MS_MAX;
while (Date.now() < deadline) {
  const { conversation } = await ask(
    '{ conversation { messages(last: 10) { nodes { id role status text replyToId } } } }',
  );
  const reply = conversation.messages.nodes.find(
    (message) => message.replyToId === sendMessage.message.id && message.status === 'POSTED' && message.text !== '',
  );
  if (reply) {
    console.log(`answered: ${reply.text}`);
    process.exit(0);
  }
  await new Promise((done) => setTimeout(done, 200));
}
console.error('no answer came');
process.exit(1);
