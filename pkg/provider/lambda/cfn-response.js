// Answers a custom resource's request: send(event, context, SUCCESS or FAILED, data, physicalResourceId, noEcho).
'use strict';

const https = require('https');

exports.SUCCESS = 'SUCCESS';
exports.FAILED = 'FAILED';

exports.send = function (event, context, responseStatus, responseData, physicalResourceId, noEcho) {
  const body = JSON.stringify({
    Status: responseStatus,
    Reason: 'See the details in CloudWatch Log Stream: ' + context.logStreamName,
    PhysicalResourceId: physicalResourceId || context.logStreamName,
    StackId: event.StackId,
    RequestId: event.RequestId,
    LogicalResourceId: event.LogicalResourceId,
    NoEcho: noEcho || false,
    Data: responseData,
  });
  const done = () => {
    if (typeof context.done === 'function') {
      context.done();
    }
  };
  return new Promise((resolve) => {
    const url = new URL(event.ResponseURL);
    const request = (url.protocol === 'http:' ? require('http') : https).request(url, {
      method: 'PUT',
      headers: { 'content-type': '', 'content-length': Buffer.byteLength(body) },
    }, (response) => {
      console.log('Status code: ' + response.statusCode);
      response.resume();
      resolve();
      done();
    });
    request.on('error', (error) => {
      console.log('send(..) failed: ' + error.message);
      resolve();
      done();
    });
    request.end(body);
  });
};
