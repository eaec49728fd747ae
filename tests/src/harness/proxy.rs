//! A network in front of Postgres that a test can cut: connections end, new ones are refused, and later it works again.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

/// Where a server of Postgres answers.
#[derive(Clone)]
enum Server {
  Socket(String),
  Address(String),
}

/// The network. It begins cut.
pub(crate) struct Proxy {
  server: Server,
  host: String,
  port: u16,
  url: String,
  running: JoinSet<()>,
}

impl Proxy {
  /// A network in front of the database with this address.
  pub(crate) async fn of(url: &str) -> Self {
    Self::at("127.0.0.1", url).await
  }

  /// The same, listening on this address.
  pub(crate) async fn at(listen: &str, url: &str) -> Self {
    let parsed = reqwest::Url::parse(url).expect("the address of a database");
    let host = parsed.query_pairs().find(|(name, _)| name == "host").map(|(_, value)| value.into_owned());
    let server = match host {
      Some(folder) => Server::Socket(format!("{folder}/.s.PGSQL.{}", parsed.port().unwrap_or(5432))),
      None => Server::Address(format!("{}:{}", parsed.host_str().expect("a host"), parsed.port().unwrap_or(5432))),
    };
    // Found free once, and taken again whenever the network is joined.
    let free = TcpListener::bind((listen, 0)).await.expect("a free port").local_addr().expect("an address").port();
    let (user, password) = (parsed.username(), parsed.password().unwrap_or_default());
    let secret = if password.is_empty() { String::new() } else { format!(":{password}") };
    let url = format!("postgres://{user}{secret}@{listen}:{free}{}?sslmode=disable", parsed.path());
    Self { server, host: listen.to_owned(), port: free, url, running: JoinSet::new() }
  }

  /// The database's address through this network.
  pub(crate) fn url(&self) -> &str {
    &self.url
  }

  /// The network works.
  pub(crate) async fn join(&mut self) {
    let listener = TcpListener::bind((self.host.as_str(), self.port)).await.expect("its port is still free");
    let server = self.server.clone();
    self.running.spawn(async move {
      let mut connections = JoinSet::new();
      while let Ok((client, _)) = listener.accept().await {
        connections.spawn(carry(client, server.clone()));
      }
    });
  }

  /// The network breaks: what is connected ends, and nobody answers any more.
  pub(crate) async fn cut(&mut self) {
    self.running.shutdown().await;
  }
}

async fn carry(mut client: TcpStream, server: Server) {
  // A side that breaks off ends the other.
  match server {
    Server::Socket(path) => {
      if let Ok(mut server) = UnixStream::connect(path).await {
        copy_bidirectional(&mut client, &mut server).await.ok();
      }
    }
    Server::Address(address) => {
      if let Ok(mut server) = TcpStream::connect(address).await {
        copy_bidirectional(&mut client, &mut server).await.ok();
      }
    }
  }
}
