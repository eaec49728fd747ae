//! The audit: every fact once, in order, and by every filter.

use pa_domain::{ThingId, Timestamp};

use super::{Filter, Page, page};
use crate::testing::story::{PARTITION, Story, agent};
use crate::tests::Model;

fn story() -> Story {
  let mut story = Story::default();
  story.create(agent(1));
  story.create(agent(2));
  for number in 0..10 {
    story.turn(agent(1), &format!("question {number}"), "answer");
    story.turn(agent(2), "meanwhile", "yes");
  }
  story
}

fn ordinals(page: &Page) -> Vec<i64> {
  page.rows.iter().map(|row| row.ordinal).collect()
}

#[tokio::test]
async fn every_fact_of_an_agent_has_one_line_in_order() {
  let story = story();
  let model = Model::of(&story.decisions).await;
  let mut seen = Vec::new();
  let mut after = None;
  loop {
    let next = page(&model.pool, agent(1), &Filter::default(), 30, after).await.unwrap();
    after = next.rows.last().map(|row| row.ordinal);
    let more = next.has_next;
    seen.extend(next.rows);
    if !more {
      break;
    }
  }
  let facts: Vec<_> =
    story.decisions.iter().flat_map(|decision| (decision.first..).zip(&decision.facts)).filter(|(_, (meta, _))| meta.agent == agent(1)).collect();
  assert_eq!(seen.len(), facts.len());
  for (row, (position, (meta, event))) in seen.iter().zip(facts) {
    assert_eq!((row.ordinal, row.position, row.partition), (meta.ordinal, position, PARTITION));
    assert_eq!((row.id, row.type_name.as_str(), row.at), (meta.id, event.versioned_type(), meta.at));
    assert_eq!((row.cause, row.correlation, row.input_position), (meta.cause, meta.correlation, meta.input));
    assert_eq!((row.actor.as_str(), row.origin, row.thing), ("owner", meta.origin, event.thing()));
  }
}

#[tokio::test]
async fn filters_hold_together() {
  let story = story();
  let model = Model::of(&story.decisions).await;
  let all = page(&model.pool, agent(1), &Filter::default(), 200, None).await.unwrap();
  let with = |filter: Filter| {
    let pool = model.pool.clone();
    async move { page(&pool, agent(1), &filter, 200, None).await.unwrap() }
  };
  let expect = |keep: &dyn Fn(&super::Row) -> bool| all.rows.iter().filter(|row| keep(row)).map(|row| row.ordinal).collect::<Vec<_>>();

  let thing = all.rows.iter().find_map(|row| row.thing).unwrap();
  assert_eq!(ordinals(&with(Filter { thing: Some(thing), ..Filter::default() }).await), expect(&|row| row.thing == Some(thing)));
  for name in ["pa.conversation.ReplyPosted", "pa.conversation.ReplyPosted.v1"] {
    let posted = with(Filter { types: vec![name.to_owned()], ..Filter::default() }).await;
    assert_eq!(ordinals(&posted), expect(&|row| row.type_name == "pa.conversation.ReplyPosted.v1"));
    assert_eq!(posted.rows.len(), 10);
  }
  let two = vec!["pa.timer.TimerSet".to_owned(), "pa.conversation.MessageAdmitted".to_owned()];
  let of_two = |row: &super::Row| row.type_name.starts_with("pa.timer.TimerSet") || row.type_name.starts_with("pa.conversation.MessageAdmitted");
  assert_eq!(ordinals(&with(Filter { types: two.clone(), ..Filter::default() }).await), expect(&of_two));
  let both = Filter { types: two, thing: Some(thing), ..Filter::default() };
  assert_eq!(ordinals(&with(both).await), expect(&|row| of_two(row) && row.thing == Some(thing)));
  assert_eq!(with(Filter { types: vec!["pa.future.Thing".to_owned()], ..Filter::default() }).await.rows, []);
  assert_eq!(with(Filter { thing: Some(ThingId(uuid::Uuid::nil())), ..Filter::default() }).await.rows, []);
}

#[tokio::test]
async fn an_instant_is_found_wherever_it_lies() {
  let story = story();
  let model = Model::of(&story.decisions).await;
  let all = page(&model.pool, agent(1), &Filter::default(), 200, None).await.unwrap().rows;
  let instants: Vec<i64> = all.iter().flat_map(|row| [row.at.0 - 1, row.at.0, row.at.0 + 1]).chain([0, i64::MAX]).collect();
  for instant in instants {
    let since = Filter { since: Some(Timestamp(instant)), ..Filter::default() };
    let until = Filter { until: Some(Timestamp(instant)), ..Filter::default() };
    let late = page(&model.pool, agent(1), &since, 200, None).await.unwrap();
    let early = page(&model.pool, agent(1), &until, 200, None).await.unwrap();
    assert_eq!(ordinals(&late), all.iter().filter(|row| row.at.0 >= instant).map(|row| row.ordinal).collect::<Vec<_>>(), "since {instant}");
    assert_eq!(ordinals(&early), all.iter().filter(|row| row.at.0 < instant).map(|row| row.ordinal).collect::<Vec<_>>(), "until {instant}");
  }
}
