// npm's ksqldb-client (HTTP/2 only) and ksqldb-js, as an application uses them.
// Prints one JSON object with what they returned.
const [url, user, password] = process.argv.slice(2);
const KsqldbClient = require("ksqldb-client");
const KsqldbJs = require("ksqldb-js");

async function later(probe) {
  for (let attempt = 0; attempt < 300; attempt++) {
    const found = await probe();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`never true: ${probe}`);
}

async function http2Client() {
  const { protocol, hostname, port } = new URL(url);
  const options = { host: `${protocol}//${hostname}`, port, timeout: 10000 };
  if (user) options.authorization = { username: user, password, ssl: {} };
  const client = new KsqldbClient(options);
  await client.connect();
  const found = {};
  found.created = await client.executeStatement(
    "CREATE STREAM \${NAME} (word VARCHAR, trees INT) WITH (kafka_topic='words', partitions=1, value_format='JSON');",
    { sessionVariables: { NAME: "words" } },
  );
  await client.executeStatement(
    "CREATE TABLE counts AS SELECT word, COUNT(*) AS n FROM words GROUP BY word EMIT CHANGES;",
  );
  const pushed = [];
  let queryId;
  const streaming = client.streamQuery("SELECT * FROM words EMIT CHANGES;", ({ metadata, rows }) => {
    queryId = metadata.queryId;
    pushed.push(...(rows || []));
  });
  await later(() => queryId);
  found.inserted = await client.insertInto("words", { word: "tree" });
  await client.insertInto("words", { word: "wind" });
  found.wrong = await client.insertInto("words", { word: "wood", trees: "many" });
  await later(() => pushed.length === 2);
  found.closed = await client.terminatePushQuery(queryId);
  found.streamed = await streaming;
  found.pushed = pushed;
  found.pulled = await later(async () => {
    const answer = await client.query("SELECT * FROM counts WHERE word IN ('tree', 'wind');");
    return answer.data && answer.data.rows.length === 2 && answer;
  });
  found.error = await client.query("SELECT * FROM;");
  found.unknown = await client.terminatePushQuery("WrongId");
  found.streams = await client.listStreams();
  found.tables = await client.listTables();
  found.topics = await client.listTopics();
  found.queries = await client.listQueries();
  await client.disconnect();
  return found;
}

async function otherClient() {
  const client = new KsqldbJs({ ksqldbURL: url, API: user, secret: password });
  const found = {};
  await client.createStream("js", ["id INT KEY", "name VARCHAR"], "js", "json", 1);
  const rows = [];
  found.queryId = await client.push("SELECT * FROM js EMIT CHANGES;", (chunk) => rows.push(chunk));
  found.inserted = await client.insertStream("js", [
    { id: 1, name: "Ada" },
    { id: 2, name: "Grace" },
  ]);
  await later(() => rows.length === 3);
  found.rows = rows.map((each) => JSON.parse(each));
  found.pulled = await client.pull("SELECT * FROM js;");
  return found;
}

(async () => {
  const found = { http2: await http2Client(), js: await otherClient() };
  console.log(JSON.stringify(found));
  process.exit(0);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
