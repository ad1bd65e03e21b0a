//! Asks the metadata service of a cloud where this machine is, before the node starts: HTTP/1.1,
//! one request a connection.

use std::net::{IpAddr, SocketAddr};

use env::{Env, TcpStream};
use ring::{Cloud, MetadataRequest, MetadataService, RackDc};

/// More than that of an answer is not read: a name or an address is what is asked for.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Bytes that are read at a time.
const READ_BYTES: usize = 4 << 10;
/// How often a request is sent again with a new token, as in Cassandra.
const RETRIES: usize = 1;
const UNAUTHORIZED: u16 = 401;

/// Where this machine is, by its cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// Data centre and rack, as `cassandra-rackdc.properties` says them.
    pub rack_dc: String,
    /// By which others know the node, where the snitch says so.
    pub public_address: Option<IpAddr>,
}

/// An answer, or why there is none.
struct Answer {
    status: u16,
    reason: String,
    body: String,
}

/// Asks the service at an address.
///
/// # Errors
/// If it does not say where the machine is: what was asked, why there is no answer, and what the
/// operator can do.
pub async fn discover(
    env: &Env,
    cloud: Cloud,
    service: &MetadataService,
    address: SocketAddr,
) -> Result<Discovered, String> {
    let mut client = Client { env, service, address, token: None };
    let zone = client.ask(|token| service.zone(token)).await?;
    let (data_center, rack) = service.place(&zone)?;
    let rack_dc = RackDc::text_of(&data_center, &rack);
    let public_address = match cloud.has_addresses() {
        false => None,
        true => {
            let text = client.ask(|token| service.public_address(token)).await?;
            let address = text.trim().parse::<IpAddr>();
            Some(address.map_err(|_| format!("{:?} is not an address of this machine", text))?)
        }
    };
    Ok(Discovered { rack_dc, public_address })
}

struct Client<'a> {
    env: &'a Env,
    service: &'a MetadataService,
    address: SocketAddr,
    token: Option<String>,
}

impl Client<'_> {
    /// Sends a request, with a token where the service wants one.
    async fn ask(
        &mut self,
        request: impl Fn(Option<&str>) -> MetadataRequest,
    ) -> Result<String, String> {
        let mut retries = RETRIES;
        loop {
            if let Some(asks) = self.service.token().filter(|_| self.token.is_none()) {
                let answer = self.send(&asks).await?;
                self.token = Some(self.good(&asks, answer)?.trim().to_owned());
            }
            let request = request(self.token.as_deref());
            let answer = self.send(&request).await?;
            if answer.status == UNAUTHORIZED && self.token.is_some() && retries > 0 {
                retries -= 1;
                self.token = None;
                continue;
            }
            return self.good(&request, answer);
        }
    }

    fn refused(&self, request: &MetadataRequest, why: &str) -> String {
        let MetadataService { host, port, .. } = self.service;
        format!(
            "the metadata service of the cloud did not answer {} http://{host}:{port}{}: {why}; \
             set its URL in cassandra-rackdc.properties, or another endpoint_snitch",
            request.method, request.path
        )
    }

    fn good(&self, request: &MetadataRequest, answer: Answer) -> Result<String, String> {
        match answer.status {
            200 => Ok(answer.body),
            status => {
                let why = format!("HTTP response code: {status} ({})", answer.reason);
                Err(self.refused(request, &why))
            }
        }
    }

    async fn send(&self, request: &MetadataRequest) -> Result<Answer, String> {
        let exchange = self.exchange(request);
        let answer = match self.env.timeout(self.service.timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("nothing came in {:?}", self.service.timeout)),
        };
        answer.map_err(|why| self.refused(request, &why))
    }

    async fn exchange(&self, request: &MetadataRequest) -> Result<Answer, String> {
        let failed = |error: std::io::Error| error.to_string();
        let stream = TcpStream::connect(self.env, self.address).await.map_err(failed)?;
        let MetadataRequest { method, path, headers } = request;
        let headers: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 0\r\n\
             {headers}\r\n",
            self.service.host
        );
        stream.write_all(text.as_bytes()).await.map_err(failed)?;
        let mut bytes = Vec::new();
        let mut part = [0; READ_BYTES];
        loop {
            if let Some(answer) = parse(&bytes, false)? {
                return Ok(answer);
            }
            let read = stream.read(&mut part).await.map_err(failed)?;
            if read == 0 {
                let answer = parse(&bytes, true)?;
                return answer.ok_or_else(|| "the connection ended within the answer".to_owned());
            }
            bytes.extend_from_slice(part.get(..read).unwrap_or_default());
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes"));
            }
        }
    }
}

/// An answer, if these bytes are a whole one; where no length is said, it ends with the connection.
fn parse(bytes: &[u8], is_end: bool) -> Result<Option<Answer>, String> {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(None) };
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().splitn(3, ' ');
    let (version, status) = (first.next().unwrap_or_default(), first.next());
    let status = status.and_then(|status| status.parse().ok());
    let Some(status) = status.filter(|_| version.starts_with("HTTP/1.")) else {
        return Err("the answer is not HTTP".to_owned());
    };
    let reason = first.next().unwrap_or_default().to_owned();
    let length = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        let is_length = name.trim().eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    });
    let body = match length {
        Some(length) => match body.get(..length) {
            Some(body) => body,
            None => return Ok(None),
        },
        None if is_end => body,
        None => return Ok(None),
    };
    Ok(Some(Answer { status, reason, body: body.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_length_or_its_connections_end() {
        let text = |bytes: &str, is_end| {
            let answer = parse(bytes.as_bytes(), is_end)?;
            Ok::<_, String>(answer.map(|answer| (answer.status, answer.reason, answer.body)))
        };
        let whole = "HTTP/1.1 200 OK\r\nContent-length: 2\r\n\r\nab";
        let good = Ok(Some((200, "OK".to_owned(), "ab".to_owned())));
        assert_eq!(text(whole, false), good);
        assert_eq!(text(&whole[..whole.len() - 1], false), Ok(None));
        let without = "HTTP/1.0 200 OK\r\n\r\nab";
        assert_eq!(text(without, false), Ok(None));
        assert_eq!(text(without, true), good);
        assert_eq!(
            text("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false).unwrap().unwrap().0,
            404
        );
        assert!(text("SSH-2.0\r\n\r\n", false).is_err());
        assert_eq!(text("", true), Ok(None));
        let huge = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\nab";
        assert_eq!(text(huge, false), Ok(None));
    }
}
