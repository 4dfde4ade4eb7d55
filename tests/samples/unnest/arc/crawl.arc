filedesc://crawl.arc 0.0.0.0 19961201160000 text/plain 77
1 0 InternetArchive
URL IP-address Archive-date Content-type Archive-length


dns:example.org 10.0.0.1 19961201160001 text/dns 44
19961201160001
example.org. 1 IN A 10.0.0.1

http://example.org/whales 10.0.0.1 19961201160002 text/html 127
HTTP/1.0 200 OK
Content-Type: text/html; charset=utf-8
Last-Modified: Tue, 01 Dec 1994 16:00:00 GMT

<title>Whales</title>

http://example.org/c 10.0.0.1 19961201160003 text/plain 88
HTTP/1.1 200 OK
Transfer-Encoding: chunked
Content-Type: text/plain

5
hello
0


ftp://example.org/f 10.0.0.1 19961201160004 text/plain 6
plain

