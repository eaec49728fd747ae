//! Positions and progress.

use super::{partitions, progress, progress_of_many, rebuilt};
use crate::testing::story::{PARTITION, agent, everything, mark};
use crate::tests::Model;

#[tokio::test]
async fn positions_and_progress_move_with_the_rows() {
  let story = everything();
  let model = Model::of(&story.decisions).await;
  let rows = partitions(&model.pool).await.unwrap();
  let end = mark(&story.decisions);
  assert_eq!(rows.iter().map(|row| (row.partition, row.next_position, row.epoch, row.seq)).collect::<Vec<_>>(), [(PARTITION, end.next_position, 1, end.seq)]);
  let two = [agent(1), agent(2)];
  let mut seen = progress_of_many(&model.pool, &[agent(1), agent(2), agent(8)]).await.unwrap();
  seen.sort();
  assert_eq!(seen, two.map(|id| (id, story.ordinal(id))));
  assert_eq!(progress(&model.pool, agent(8)).await.unwrap(), 0);
  assert_eq!(rebuilt(&model.pool).await.unwrap(), None);
}
