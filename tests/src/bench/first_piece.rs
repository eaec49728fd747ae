//! first piece: the model sends its first token → the frame with it is on the subscription.
//!
//! The model is the product's own rehearsal server, scripted: it holds every reply from the start. The clock starts when the hold is released, so the token's own way
//! to the product counts as ours.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pa_model::rehearsal::{Hold, Options, Reply, Script, Server};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::Bench;
use super::client::Client;
use super::line::Line;
use super::measure::{histogram, quantile, record};
use super::product::{Account, Home};
use super::socket::Socket;

const P50_MAX: f64 = 5.0;
const FIRST: &str = "Here is the first token";
const FRAME_MAX: Duration = Duration::from_secs(60);

pub(super) async fn run(bench: &mut Bench) -> Result<()> {
  let listener = TcpListener::bind("127.0.0.1:0").await.context("bind the model's port")?;
  let script = Script::new();
  let model = Server::with_script(listener, Options { pause: Duration::ZERO, ..Options::default() }, script.clone()).context("start the model")?;
  let home = Home::new(bench, &model.base_url()).await?;
  let product = home.start().await?;
  let account = &Account::owner();
  let (mut client, mut socket) = (Client::connect(&product.address, account).await?, Socket::connect(&product.address, account).await?);
  let mut latencies = histogram();
  for number in 0..bench.options.of(2, 20, 100) {
    let hold = Hold::new();
    script.queue(Reply::new().hold(&hold).say(FIRST).say(" and the rest."));
    client.say(&format!("piece {number}"), "Say something.").await?;
    timeout(FRAME_MAX, hold.reached()).await.context("the model was not asked in time")?;
    // Whatever the turn's start has set off comes to rest.
    sleep(Duration::from_millis(40)).await;
    let released = Instant::now();
    hold.release();
    frame(&mut socket, |frame| frame.contains("ReplyPiece") && frame.contains(FIRST)).await?;
    record(&mut latencies, released.elapsed());
    frame(&mut socket, |frame| frame.contains("\"status\":\"POSTED\"")).await?;
  }
  let (p50, p99) = (quantile(&latencies, 0.5), quantile(&latencies, 0.99));
  bench.printer.print(&Line::new("first_piece", "ms, p50", p50).target(format!("≤ {P50_MAX} ms"), p50 <= P50_MAX).also("p99_ms", p99))
}

async fn frame(socket: &mut Socket, is: impl Fn(&str) -> bool) -> Result<()> {
  let heard = async {
    loop {
      if is(&socket.next().await?) {
        return Ok(());
      }
    }
  };
  timeout(FRAME_MAX, heard).await.context("a frame did not come in time")?
}
