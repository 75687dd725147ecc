// SPDX-License-Identifier: MIT
//! tokio: a server that sends back what it gets, with two workers, and its 16 clients, in one
//! process; each makes 4,000 rounds of 64 bytes.
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CLIENTS: usize = 16;
const ROUNDS: usize = 4000;

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut text = [0; 64];
    while stream.read_exact(&mut text).await.is_ok() {
        stream.write_all(&text).await?;
    }
    Ok(())
}

async fn ask(port: u16) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let mut text = [0; 64];
    for n in 0..ROUNDS {
        let sent = [n as u8; 64];
        stream.write_all(&sent).await?;
        stream.read_exact(&mut text).await?;
        assert_eq!(sent, text);
    }
    Ok(())
}

async fn all() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(serve(stream));
        }
    });
    let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(ask(port))).collect();
    for client in clients {
        client.await.unwrap()?;
    }
    Ok(())
}

#[no_mangle]
pub extern "C" fn bench_main() -> i32 {
    let mut workers = tokio::runtime::Builder::new_multi_thread();
    let runtime = workers.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(all()).unwrap();
    0
}
