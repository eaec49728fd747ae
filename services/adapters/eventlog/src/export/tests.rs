//! What the lines say.

use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::tail::tests::{AGENT, World, input};

async fn lines(world: &World, filter: &Filter) -> Vec<Value> {
  let mut out = Vec::new();
  let count = export(&world.shared(), &world.opener(), filter, &[Stream::Inputs, Stream::Events], &mut out).await.unwrap();
  let lines: Vec<Value> = String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
  assert_eq!(lines.len() as u64, count);
  lines
}

async fn world() -> World {
  let world = World::new();
  world.announce(1);
  world.put(input(4), 1, 1).await;
  world.announce(2);
  world.put(input(5), 1, 3).await;
  world
}

#[tokio::test]
async fn every_record_is_a_line_and_what_does_not_count_says_why() {
  let lines = lines(&world().await, &Filter::default()).await;
  assert_eq!(lines.len(), 6);
  let first = &lines[1];
  assert_eq!((&first["stream"], &first["partition"], &first["offset"]), (&"pa.events".into(), &0.into(), &1.into()));
  assert_eq!(first["headers"]["ce_type"], "pa.log.InputSettled.v1");
  assert_eq!(first["headers"]["ce_source"], "pa/decider");
  assert_eq!(first["headers"]["ce_time"], "1970-01-01T00:00:00.009Z");
  assert_eq!(first["headers"]["content-type"], "application/avro");
  assert_eq!(first["meta"]["core"]["agent"], AGENT.to_string());
  assert_eq!(first["meta"]["core"]["origin"], "PLATFORM");
  assert_eq!((&first["meta"]["place"]["part"], &first["meta"]["place"]["parts"]), (&1.into(), &2.into()));
  assert!(first.get("body").is_none() && first.get("void").is_none());
  assert_eq!(lines[4]["void"], "OldEpoch");
}

#[tokio::test]
async fn opened_lines_have_their_bodies() {
  let lines = lines(&world().await, &Filter { agent: None, open: true }).await;
  assert_eq!(lines[0]["body"]["inputs_from"], 0);
  assert_eq!(lines[1]["body"]["reason"], "NOT_FOUND");
}

#[tokio::test]
async fn an_erased_agent_says_so() {
  let world = world().await;
  world.keys.erase(AGENT).await.unwrap();
  let lines = lines(&world, &Filter { agent: Some(AGENT), open: true }).await;
  assert_eq!(lines.len(), 4, "no line about the partition");
  assert!(lines.iter().all(|line| line["erased"] == true && line.get("body").is_none()));
  assert!(self::lines(&world, &Filter { agent: Some(AgentId(Uuid::from_u128(2))), open: true }).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tail_writes_what_comes() {
  let world = world().await;
  let (mut out, read) = tokio::io::duplex(64 * 1024);
  let (log, opener) = (world.shared(), world.opener());
  let filter = Filter { agent: None, open: true };
  let written = tail(&log, &opener, &filter, &[Stream::Events], &mut out);
  let reading = async {
    use tokio::io::AsyncBufReadExt as _;
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.put(input(6), 2, 1).await;
    let mut lines = tokio::io::BufReader::new(read).lines();
    let line: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    (line["offset"].clone(), line["body"]["reason"].clone())
  };
  tokio::select! {
    Err(error) = written => panic!("{error}"),
    line = reading => assert_eq!(line, (6.into(), "NOT_FOUND".into())),
  }
}
